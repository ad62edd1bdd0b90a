import { globSync } from 'node:fs';
import { allVerbs, commonOptions, groups, nameOf, topics } from '@tapedeck/cli/internal';
import { expect, test } from 'vitest';
import { tapeHere } from '../support/cli.ts';
import { brief, showing } from '../support/long-verbs.ts';
import { page, root, tableAfter } from './pages.ts';

const verbs = await allVerbs();

/** What a command line of help prints, which is without an error. */
async function help(...args: string[]): Promise<string> {
  const { stdout, stderr, code } = await tapeHere(args);
  expect({ code, stderr }, args.join(' ')).toEqual({ code: 0, stderr: '' });
  return stdout;
}

test('the first page and the prompt below it fit on a screen of 80 x 24, and it names each group, verb and topic', async () => {
  const page = await help('--help');
  const lines = page.trimEnd().split('\n');
  expect(lines.length).toBeGreaterThan(16);
  expect(lines.length).toBeLessThanOrEqual(23);
  expect(lines.filter(({ length }) => length > 80)).toEqual([]);
  for (const group of groups) expect(page).toMatch(new RegExp(`^${group} +[a-z]+ +[A-Z]`, 'm'));
  const words = new Set(page.split(/\s+/));
  expect(
    [...verbs.map(nameOf), ...topics.map(({ name }) => name)].filter((name) => !words.has(name)),
  ).toEqual([]);
  for (const line of [['help'], ['-h'], ['--quiet', '--help']]) expect(await help(...line)).toBe(page);
});

test('help --all lists each verb with its summary, by what a user wants', async () => {
  const page = await help('help', '--all');
  expect([...page.matchAll(/^([A-Z][a-z]+):$/gm)].map(([, title]) => title)).toEqual([...groups, 'Topics']);
  const flat = page.replace(/\s+/g, ' ');
  for (const verb of verbs) expect(flat).toContain(` ${nameOf(verb)} ${verb.summary}`);
});

test.each(verbs.map((verb) => [nameOf(verb), verb] as const))(
  'help %s is that of --help: examples, then the options of every verb, once',
  async (name, verb) => {
    const page = await help('help', name);
    expect(await help(name, '--help')).toBe(page);
    expect(await help('--quiet', name, '-h')).toBe(page);
    expect(page.startsWith(`tape ${verb.command}`)).toBe(true);
    expect(page.split('\n').filter((line) => line.length > 80 && !line.startsWith('  '))).toEqual([]);
    const at = page.indexOf('\nOptions of every verb:\n');
    const [own, common] = [page.slice(0, at), page.slice(at)];
    for (const [command] of verb.examples) expect(own).toContain(`\n  ${command}\n`);
    for (const option of Object.keys(commonOptions)) {
      const written = new RegExp(`^  (?:-\\w, )?--(?:\\[no-\\])?${option}\\b`, 'm');
      // A verb can have another option of that name.
      const isOwn = Object.hasOwn(verb.options ?? {}, option);
      expect([option, written.test(own), written.test(common)]).toEqual([option, isOwn, !isOwn]);
    }
    expect(verb.examples.length).toBeGreaterThan(0);
  },
);

/** Whether a topic stands on the page of a verb. */
const isOfVerb = (name: string) => verbs.some((verb) => nameOf(verb) === name);

const alone = topics.map(({ name }) => name).filter((name) => !isOfVerb(name));

test.each(alone)('help %s prints a short page', async (name) => {
  const page = await help('help', name);
  const lines = page.trimEnd().split('\n');
  expect(lines.length).toBeGreaterThan(8);
  expect(lines.length).toBeLessThanOrEqual(50);
  expect(lines.filter(({ length }) => length > 80)).toEqual([]);
  expect(page).not.toContain('`');
});

/** The words of a topic that are marked as typed. */
function marked(name: string): Set<string> {
  const topic = topics.find((one) => one.name === name);
  return new Set(JSON.stringify(topic).match(/(?<=`)[^`]+(?=`)/g));
}

test('the topic environment names each variable that the sources read, but for those of systems and terminals', () => {
  const terminals = [
    'TERM',
    'TERM_PROGRAM',
    'TERM_PROGRAM_VERSION',
    'KONSOLE_VERSION',
    'VTE_VERSION',
    'WT_SESSION',
  ];
  const others = ['HOME', 'PATH', ...terminals];
  const sources = globSync('packages/{cli,runtime,tape}/src/**/*.ts', { cwd: root }).map(page).join('\n');
  const read = new Set(sources.match(/(?<=\benv\.)[A-Z][A-Z_]+|\b[A-Z_]+_(?:API_KEY|BASE_URL)\b/g));
  const named = marked('environment');
  expect(read.size).toBeGreaterThan(10);
  expect([...read].filter((name) => !named.has(name) && !others.includes(name))).toEqual([]);
  expect([...named].filter((name) => /^[A-Z]+_[A-Z_]+$/.test(name) && !read.has(name))).toEqual([]);
});

test('the topic config names each field of the reference', () => {
  const fields = tableAfter(page('docs/cli.md'), 'Configuration').map(([field = '']) =>
    field.replace(/^limits\..*/, 'limits.NAME'),
  );
  const named = marked('config');
  expect(fields.length).toBeGreaterThan(20);
  expect(fields.filter((field) => !named.has(field))).toEqual([]);
});

test('a topic that is named like a verb stands on the page of that, and help of anything else is refused', async () => {
  expect(topics.map(({ name }) => name).filter(isOfVerb)).toEqual(['config']);
  const page = await help('help', 'config');
  const titles = topics.flatMap(({ name, page: { sections } }) =>
    name === 'config' ? sections.flatMap(({ title }) => title ?? []) : [],
  );
  expect(titles.length).toBeGreaterThan(1);
  for (const title of titles) expect(page).toContain(`\n${title}:\n`);
  expect(page.split('\n').filter(({ length }) => length > 80)).toEqual([]);
  expect(await tapeHere(['help', 'lgo'])).toEqual({
    code: 2,
    stdout: '',
    stderr:
      "Error: cannot show the help of 'lgo': no such verb or topic; did you mean log?\n" +
      `Hint: all verbs: tape --help; topics: ${topics.map(({ name }) => name).join(', ')}\n`,
  });
  for (const [word, meant] of [
    ['point', 'points'],
    ['checkout', 'branch'],
    ['chekout', 'branch'],
    ['histroy', 'log'],
  ] as const)
    for (const line of word === 'point' ? [['help', word]] : [['help', word], [word]])
      expect([line, (await tapeHere(line)).stderr]).toEqual([
        line,
        expect.stringContaining(`; did you mean ${meant}?\n`),
      ]);
  expect((await tapeHere(['help', 'log', 'main'])).code).toBe(2);
  expect((await tapeHere(['help', '--al'])).code).toBe(2);
});

test('-v and --version print the version, and a word after -- is neither', async () => {
  const version = await help('--version');
  expect(version).toMatch(/^\d+\.\d+\.\d+\n$/);
  expect(await help('-v')).toBe(version);
  expect(await help('log', '--version')).toBe(version);
  expect((await tapeHere(['log', 'main', '-v'])).stderr).toContain('cannot use -v: no such option');
  expect((await tapeHere(['help', '--', '--version'])).code).toBe(2);
});

test('each verb shows how far it is, or has a reason why it never takes long', async () => {
  const verbs = (await allVerbs()).map(nameOf);
  const others = Object.values(brief).flatMap((names) => names.split(' '));
  expect(verbs.filter((verb) => !showing.includes(verb) && !others.includes(verb))).toEqual([]);
  expect([...showing, ...others].filter((verb) => !verbs.includes(verb))).toEqual([]);
  expect(others.filter((verb) => showing.includes(verb))).toEqual([]);
});
