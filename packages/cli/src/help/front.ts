import type { Aliases } from '../config/aliases.ts';
import { oneLine } from '../escape.ts';
import { groups, nameOf, type Verb } from '../verbs/verb.ts';
import type { Page, Term } from './page.ts';
import { topics } from './topics/index.ts';
import { commonSection } from './verb-page.ts';

/** The verbs that the first page explains. It names the others: with these a user starts, and the page is one screen. */
const first: ReadonlySet<string> = new Set([
  ...['init', 'import', 'run', 'chat', 'sessions', 'log', 'rewind'],
  ...['fork', 'merge', 'check', 'backup'],
]);

const usage = [
  'tape VERB [SESSION[@POINT]] [OPTIONS]',
  'Record, fork, run and merge agent sessions on append-only tapes.',
];

/** What `tape --help` prints: one screen. */
export function frontPage(verbs: readonly Verb[], aliases: Aliases): Page {
  const rows = groups.flatMap((group) =>
    verbs
      .filter((verb) => verb.group === group && first.has(nameOf(verb)))
      .map((verb, i) => `${(i === 0 ? group : '').padEnd(8)}${nameOf(verb).padEnd(10)}${verb.summary}`),
  );
  // Those of a group stand together.
  const others = groups.map((group) =>
    verbs
      .filter((verb) => verb.group === group && !first.has(nameOf(verb)))
      .map(nameOf)
      .join(' '),
  );
  const names = topics.map(({ name }) => name);
  const labels = [
    labelled('Also', [others.join(' · ')]),
    ...(aliases.size === 0 ? [] : [labelled('Aliases', shownNames(aliases))]),
    labelled('Topics', names),
    labelled('More', ['tape help VERB,', 'tape help TOPIC,', 'tape help --all']),
  ];
  return {
    sections: [
      { blocks: [{ lines: usage, labels: 0 }] },
      { blocks: [{ lines: rows, labels: 18 }] },
      { blocks: [{ lines: labels, labels: 8 }] },
    ],
  };
}

/** Number of aliases on the first page. */
const aliasesMax = 20;

function shownNames(aliases: Aliases): readonly string[] {
  const names = [...aliases.keys()];
  return names.length > aliasesMax ? [...names.slice(0, aliasesMax), '…'] : names;
}

function aliasTerms(aliases: Aliases): readonly Term[] {
  return [...aliases].map(([name, text]) => [name, oneLine(text, 200)]);
}

function labelled(label: string, words: readonly string[]): string {
  return `${label.padEnd(8)}${words.join(' ')}`;
}

/** What `tape help --all` prints: each verb and each topic with its summary. */
export function allPage(verbs: readonly Verb[], aliases: Aliases): Page {
  return {
    sections: [
      { blocks: [{ lines: usage, labels: 0 }] },
      ...groups.map((group) => ({
        title: group,
        blocks: [
          {
            terms: verbs
              .filter((verb) => verb.group === group)
              .map((verb) => [nameOf(verb), verb.summary] as const),
          },
        ],
      })),
      ...(aliases.size === 0 ? [] : [{ title: 'Aliases', blocks: [{ terms: aliasTerms(aliases) }] }]),
      { title: 'Topics', blocks: [{ terms: topics.map(({ name, summary }) => [name, summary] as const) }] },
      commonSection,
    ],
  };
}
