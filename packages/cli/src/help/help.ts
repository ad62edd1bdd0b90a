/**
 * The help: the first page, a page for each verb and for each topic. `page.ts` has the form of a page, and prints it.
 * A page is made of what verbs and options declare; only topics are texts of their own. Imports `command-line` and what
 * lies below.
 */
import { quote } from '@tapedeck/tape/internal';
import { nearNames } from '@tapedeck/tape/store';
import { aliasesFor } from '../command-line/aliased.ts';
import { meantVerbs } from '../command-line/asked-verb.ts';
import { namedIn, verbAt } from '../command-line/verb-in.ts';
import { type Aliases, splitWords } from '../config/aliases.ts';
import { UsageError } from '../errors/kinds.ts';
import { oneLine } from '../escape.ts';
import type { Io } from '../io.ts';
import { packageVersion } from '../package-file.ts';
import { type ColorWhen, makeStyle, usesColor } from '../terminal/style.ts';
import { allVerbs, verbName, verbNamed } from '../verbs/index.ts';
import { allPage, frontPage } from './front.ts';
import { type Page, pageText } from './page.ts';
import { topics } from './topics/index.ts';
import { verbPage } from './verb-page.ts';

/**
 * The text of the help or the version that a command line requests; undefined when it requests neither. A line without
 * any word requests the first page.
 * @throws UsageError for help of what is neither a verb nor a topic
 */
export async function helpIn(
  argv: readonly string[],
  io: Pick<Io, 'columns' | 'isTerminal' | 'env' | 'cwd'>,
): Promise<string | undefined> {
  const at = verbAt(argv);
  const before = at === -1 ? argv : argv.slice(0, at);
  if (argv.includes('--version') || before.includes('-v')) return `${packageVersion()}\n`;
  const asks = argv.length === 0 || argv.includes('--help') || argv.includes('-h');
  const isHelp = argv[at] === 'help';
  if (!asks && !isHelp) return undefined;
  const look = { columns: io.columns, style: makeStyle(usesColor(colorIn(argv), io)) };
  const aliases = namedIn(argv) === undefined ? await aliasesFor(argv, io) : new Map<string, string>();
  if (!isHelp) return pageText(await pageOf(at === -1 ? [] : [argv[at] ?? ''], aliases), look);
  const words = argv.slice(at + 1).filter((word, i, all) => !ofHelp.test(word) && all[i - 1] !== '--color');
  const page = words[0] === '--all' ? allPage(await allVerbs(), aliases) : await pageOf(words, aliases);
  return pageText(page, look);
}

/** Options that a request for help may have. */
const ofHelp = /^-h$|^--(?:help|json|jsonl|quiet|no-color|color|color=.*)$/;

/** What a line says of colours, where its options are not read. */
function colorIn(argv: readonly string[]): ColorWhen {
  if (argv.includes('--no-color')) return 'never';
  const at = argv.findIndex((word) => /^--color(?:=|$)/.test(word));
  const value = argv[at]?.split('=')[1] ?? argv[at + 1];
  return at !== -1 && (value === 'always' || value === 'never') ? value : 'auto';
}

/** The page on a verb, an alias or a topic; without a word the first one. */
async function pageOf([word, more]: readonly string[], aliases: Aliases): Promise<Page> {
  if (word === undefined) return frontPage(await allVerbs(), aliases);
  if (more !== undefined) throw new UsageError(`cannot use '${more}': there are too many arguments`);
  const topic = topics.find(({ name }) => name === word);
  if (topic !== undefined && verbName(word) === undefined) return topic.page;
  const text = aliases.get(word);
  if (text !== undefined) return await aliasPage(word, text);
  if (word.startsWith('-')) throw new UsageError(`cannot use ${word}: no such option`);
  const verb = await verbNamed(word);
  if (verb !== undefined) return verbPage(verb, topic?.page);
  const names = topics.map(({ name }) => name);
  const [near] = nearNames(word, names, { within: 1 });
  const meant = near === undefined ? meantVerbs(word, [...aliases.keys()]) : `; did you mean ${near}?`;
  throw new UsageError(`cannot show the help of ${quote(word)}: no such verb or topic${meant}`, {
    hint: `all verbs: tape --help; topics: ${names.join(', ')}`,
  });
}

/** What an alias stands for, and the help of its verb. */
async function aliasPage(name: string, text: string): Promise<Page> {
  const words = splitWords(text);
  const verb = typeof words === 'string' ? undefined : await verbNamed(words[0] ?? '');
  const stands = { blocks: [`\`tape ${name}\` stands for \`tape ${oneLine(text, 500)}\`.`] };
  return { sections: [stands, ...(verb === undefined ? [] : verbPage(verb).sections)] };
}
