/** What people see of Discord's Markdown: without marks, and with what was escaped as it is. */
export function readDiscord(content: string): string {
  const parts = content.split(/```(?:[\w+#.-]*\n)?([\s\S]*?)\n?```/);
  return parts.map((part, at) => (at % 2 === 1 ? part : readLines(part))).join('');
}

function readLines(text: string): string {
  const marks = /\\([^0-9A-Za-z\s])|\*\*|~~|[*`]|\[([^\]\n]*)\]\(https?:[^)\s]*\)/g;
  return text.replace(marks, (_, escaped?: string, words?: string) => escaped ?? words ?? '');
}
