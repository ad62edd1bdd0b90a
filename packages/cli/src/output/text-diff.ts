/** A text with the label of its side of the diff. */
interface Labelled {
  readonly label: string;
  readonly text: string;
}

/** Maximum number of edits of a diff: its cost grows with the square of this number. */
const editsMax = 2_000;

/**
 * The unified diff of two texts; empty when they are equal, undefined when they have too little in common.
 */
export async function textDiff(a: Labelled, b: Labelled): Promise<string | undefined> {
  if (a.text === b.text) return '';
  const { createTwoFilesPatch, FILE_HEADERS_ONLY } = await import('diff');
  const options = { context: 3, maxEditLength: editsMax, headerOptions: FILE_HEADERS_ONLY };
  const [from, to] = [a, b].map(({ text }) => (text.endsWith('\n') || text === '' ? text : `${text}\n`));
  return createTwoFilesPatch(a.label, b.label, from ?? '', to ?? '', undefined, undefined, options);
}
