/** The whole page. */
export function App() {
  return <main>Moirai</main>;
}
