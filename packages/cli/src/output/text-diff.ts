/** What stands above the lines of either text. */
interface Labelled {
  readonly label: string;
  readonly text: string;
}

/** How many lines may differ before two texts are other texts: comparing them costs the square of that. */
const editsMax = 2_000;

/** Two texts as a unified diff; empty when they are the same, undefined when they have too little in common. */
export async function textDiff(a: Labelled, b: Labelled): Promise<string | undefined> {
  if (a.text === b.text) return '';
  const { createTwoFilesPatch, FILE_HEADERS_ONLY } = await import('diff');
  const options = { context: 3, maxEditLength: editsMax, headerOptions: FILE_HEADERS_ONLY };
  const [from, to] = [a, b].map(({ text }) => (text.endsWith('\n') || text === '' ? text : `${text}\n`));
  return createTwoFilesPatch(a.label, b.label, from ?? '', to ?? '', undefined, undefined, options);
}
