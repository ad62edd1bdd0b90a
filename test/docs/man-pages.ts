import {
  allVerbs,
  type Block,
  commonSection,
  groups,
  nameOf,
  type Section,
  topics,
  type Verb,
  verbPage,
} from '@tapedeck/cli/internal';
import { page } from './pages.ts';

const verbs = await allVerbs();
const { version } = JSON.parse(page('packages/cli/package.json')) as { version: string };

/** The manual: `tape.1`, and a page for each verb, by the names of their files. Each is what the help prints, in roff. */
export function manPages(): ReadonlyMap<string, string> {
  const ofVerbs = verbs.map((verb) => [`tape-${nameOf(verb)}.1`, verbManual(verb)] as const);
  return new Map([['tape.1', manual()], ...ofVerbs]);
}

const summary = 'Record, fork, run and merge agent sessions on append-only tapes';

function manual(): string {
  const ofGroups = groups.map((title): Section => {
    const terms = verbs
      .filter(({ group }) => group === title)
      .map((verb) => [`tape-${nameOf(verb)}(1)`, `${verb.summary}.`] as const);
    return { title, blocks: [{ terms }] };
  });
  const ofTopics = topics.flatMap(({ name, summary: about, page: { sections } }) =>
    sections.map(
      ({ title, blocks }, i): Section =>
        i === 0
          ? {
              title: name.replace('-', ' '),
              blocks: [`${about}. \`tape help ${name}\` prints this.`, ...blocks],
            }
          : { title: `${name.replace('-', ' ')}: ${title}`, blocks },
    ),
  );
  return manPage('tape', summary, [
    { title: 'Synopsis', blocks: [{ lines: ['tape VERB [SESSION[@POINT]] [OPTIONS]'] }] },
    ...ofGroups,
    commonSection,
    ...ofTopics,
  ]);
}

function verbManual(verb: Verb): string {
  const [synopsis, about, ...others] = verbPage(verb).sections;
  return manPage(`tape-${nameOf(verb)}`, verb.summary, [
    { title: 'Synopsis', blocks: synopsis?.blocks ?? [] },
    { title: 'Description', blocks: about?.blocks ?? [] },
    ...others,
    { title: 'See also', blocks: ['`tape(1)`'] },
  ]);
}

function manPage(name: string, about: string, sections: readonly Section[]): string {
  const lines = [
    '.\\" Generated from packages/cli/src/verbs and packages/cli/src/help by: pnpm docs:man',
    `.TH ${roff(name.toUpperCase())} 1 "" "Tapedeck ${version}" "Tapedeck manual"`,
    // Lines of a narrow terminal have no room to be spread to its right edge.
    '.ad l',
    '.SH NAME',
    `${roff(name)} \\- ${roff(about)}`,
    ...sections.flatMap(({ title = '', blocks }) => [
      `.SH ${roff(title.toUpperCase())}`,
      ...blocks.flatMap((block, i) => [...(i === 0 || isTerms(block) ? [] : ['.PP']), ...blockLines(block)]),
    ]),
  ];
  return `${lines.join('\n')}\n`;
}

function isTerms(block: Block): boolean {
  return typeof block !== 'string' && 'terms' in block;
}

function blockLines(block: Block): readonly string[] {
  if (typeof block === 'string') return [textLine(block)];
  if ('lines' in block) return ['.nf', ...block.lines.map(textLine), '.fi'];
  return block.terms.flatMap(([term, meaning]) => [
    '.TP',
    `.B ${breakable(roff(term.replaceAll('`', '')))}`,
    textLine(meaning === '' ? term : meaning),
  ]);
}

/** A term that is longer than a line can end one behind each of its choices. */
function breakable(term: string): string {
  return term.length > 60 ? term.replaceAll('|', '|\\:') : term;
}

/** A line of text: one that begins with a dot or a quote is no request, and what is typed is bold. */
function textLine(text: string): string {
  const bold = roff(text).replace(/`([^`]*)`/g, '\\fB$1\\fR');
  return /^[.']/.test(bold) ? `\\&${bold}` : bold;
}

/** A text in which no character has a meaning for roff; those outside of ASCII by their numbers. */
function roff(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll('"', '\\(dq')
    .replace(
      /[^\n -~]/gu,
      (c) => `\\[u${(c.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}]`,
    );
}
