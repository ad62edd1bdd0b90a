import type { Style } from '../terminal/style.ts';

/** A page of help, in the form from which the terminal, the reference and the manual print it. */
export interface Page {
  readonly sections: readonly Section[];
}

/** A page on what several verbs share. */
export interface Topic {
  readonly name: string;
  /** What the page is on; no full stop. */
  readonly summary: string;
  readonly page: Page;
}

export interface Section {
  /** Without a title, the section has no heading. */
  readonly title?: string;
  readonly blocks: readonly Block[];
}

/**
 * A paragraph, in which backquotes mark what is typed; terms with their meaning; or lines to print as they are.
 */
export type Block = string | { readonly terms: readonly Term[] } | Lines;

/** Lines to print as they are; or the number of columns of the labels before texts, which are broken at the width. */
interface Lines {
  readonly lines: readonly string[];
  readonly labels?: number;
}

export type Term = readonly [term: string, meaning: string];

/** The text of a page for a terminal, at most 100 columns wide, with headings in bold and comments dimmed. */
export function pageText({ sections }: Page, { columns, style }: Look): string {
  const width = Math.min(100, Math.max(40, columns));
  return sections
    .map(({ title, blocks }) => {
      const indent = title === undefined ? 0 : 2;
      const body = blocks.flatMap((block, i) => [
        ...(i === 0 ? [] : ['']),
        ...linesOf(block, { columns: width - indent, style }).map((line) =>
          line === '' ? '' : ' '.repeat(indent) + line,
        ),
      ]);
      return [...(title === undefined ? [] : [style.text('bold', `${title}:`)]), ...body]
        .map((line) => `${line}\n`)
        .join('');
    })
    .join('\n');
}

/** Where a page is printed. */
interface Look {
  readonly columns: number;
  readonly style: Style;
}

function linesOf(block: Block, { columns: width, style }: Look): readonly string[] {
  if (typeof block === 'string') return wrapped(plain(block), width);
  if ('lines' in block) {
    const { lines, labels } = block;
    if (labels === undefined)
      return lines.map((line) => (line.startsWith('# ') ? style.text('dim', line) : line));
    return lines.flatMap((line) => {
      const label = labels === 0 ? '' : (/^[A-Z][a-z]+/.exec(line)?.[0] ?? '');
      const [first = '', ...rest] = wrapped(line.slice(labels), width - labels);
      const head = style.text('bold', label) + line.slice(label.length, labels) + first;
      return [head, ...rest.map((text) => ' '.repeat(labels) + text)];
    });
  }
  const terms = block.terms.map(([term, meaning]): Term => [plain(term), plain(meaning)]);
  return terms.flatMap((term) => termLines(term, terms, width));
}

/** A text without the marks of what is typed. */
function plain(text: string): string {
  return text.replaceAll('`', '');
}

/** A term that is longer than most stands on a line of its own. */
function termLines([term, meaning]: Term, all: readonly Term[], width: number): readonly string[] {
  const usual = all.map(([name]) => name.length).filter((length) => length <= 28);
  const column = Math.max(4, ...usual) + 2;
  const text = wrapped(meaning, width - column);
  const [first = '', ...rest] = term.length > 28 ? ['', ...text] : text;
  const [head = '', ...more] = brokenTerm(term, width);
  return [
    `${head.padEnd(column)}${first}`.trimEnd(),
    ...more.map((line) => `  ${line}`),
    ...rest.map((line) => ' '.repeat(column) + line),
  ];
}

/** A term in lines, broken behind the choices for which there is no room. */
function brokenTerm(term: string, width: number): readonly string[] {
  const lines: string[] = [''];
  for (const part of term.split(/(?<=\|)/)) {
    const last = lines.at(-1) ?? '';
    if (last === '' || last.length + part.length <= width - (lines.length > 1 ? 2 : 0))
      lines[lines.length - 1] = last + part;
    else lines.push(part);
  }
  return lines;
}

/** A text in lines of at most `width` characters, where its words allow it. */
function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}
