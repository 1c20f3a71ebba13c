// The web chat: one conversation per browser, streamed. Everything that matters is in the gateway; this page only shows.
const log = document.querySelector('#log');
const form = document.querySelector('#form');
const field = document.querySelector('#text');
const status = document.querySelector('#status');

const conversation = localStorage.getItem('conversation') ?? crypto.randomUUID();
localStorage.setItem('conversation', conversation);

form.addEventListener('submit', (event) => {
  event.preventDefault();
  const text = field.value.trim();
  if (text === '') return;
  field.value = '';
  void say(text);
});

field.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  form.requestSubmit();
});

async function say(text) {
  show('user', text);
  const answer = show('assistant', '');
  try {
    const response = await fetch('/v1/chat', {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
      // The same key again after a lost connection would be the same message, answered once.
      body: JSON.stringify({ text, conversation, platform: 'web', stream: true, idempotency_key: crypto.randomUUID() }),
    });
    if (!response.ok) throw new Error((await response.json()).error.message);
    for await (const { event, data } of readEvents(response.body)) apply(answer, event, data);
  } catch (error) {
    answer.classList.add('error');
    answer.textContent = error.message;
  }
}

function apply(answer, event, data) {
  if (event === 'text') answer.append(data.text);
  if (event === 'tool' && data.state === 'start') answer.append(note(`using ${data.name}`));
  if (event !== 'done') return;
  if (data.error) answer.classList.add('error');
  answer.textContent = data.reply || data.error?.message || '(nothing to say)';
  answer.scrollIntoView({ block: 'end' });
}

function show(role, text) {
  const article = document.createElement('article');
  article.className = role;
  article.textContent = text;
  log.append(article);
  article.scrollIntoView({ block: 'end' });
  return article;
}

function note(text) {
  const small = document.createElement('small');
  small.textContent = text;
  return small;
}

/** Server-sent events of a response: blank lines part them, each has a name and JSON data. */
async function* readEvents(body) {
  let rest = '';
  for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
    const blocks = (rest + chunk).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const data = block.match(/^data: (.*)$/m)?.[1];
      if (data !== undefined) yield { event: block.match(/^event: (.*)$/m)?.[1], data: JSON.parse(data) };
    }
  }
}

async function restore() {
  const key = encodeURIComponent(`agent:main:web:dm:${conversation}`);
  const { data } = await (await fetch(`/v1/sessions?key=${key}&limit=1`)).json();
  if (data[0] === undefined) return;
  const messages = await (await fetch(`/v1/sessions/${data[0].id}/messages?limit=200`)).json();
  for (const { role, text } of messages.data)
    if ((role === 'user' || role === 'assistant') && text !== '') show(role, text);
}

async function look() {
  try {
    const { state } = await (await fetch('/ready')).json();
    status.textContent = state;
  } catch {
    status.textContent = 'not reachable';
  }
}

field.focus();
await restore().catch(() => undefined);
await look();
setInterval(look, 5000);
