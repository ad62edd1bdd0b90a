import { writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { startFromSources } from '../support/process.ts';
import { tempHome } from '../support/temp-home.ts';

/** Counts the modules of each library that are loaded, and prints the counts after each act. */
const counting = `
  import { registerHooks } from 'node:module';
  const libraries = {
    ai: /node_modules\\/(?:ai|@ai-sdk\\/(?!provider\\/)[^/]+)\\//,
    zod: /node_modules\\/zod\\//,
    sessions: /packages\\/runtime\\/(?:src|dist)\\/(?:run|turn|delegation)\\/(?!engine|queue)/,
  };
  const loaded = new Set();
  registerHooks({ resolve(specifier, context, next) {
    const resolved = next(specifier, context);
    loaded.add(resolved.url);
    return resolved;
  } });
  const after = (act) => {
    const counts = Object.entries(libraries).map(([name, library]) =>
      [name, [...loaded].filter((url) => library.test(url)).length]);
    console.log(JSON.stringify({ act, ...Object.fromEntries(counts) }));
  };
`;

const [none, some] = [0, expect.toSatisfy((count: number) => count > 0)];

test('the first model call loads the AI SDK: the package, a deck, a fork and a merge do not', async () => {
  using home = tempHome();
  const answers = home.file('answers.json');
  writeFileSync(answers, JSON.stringify([{ text: 'Hi.' }]));
  await using running = startFromSources(
    `${counting}
    const [home, model] = process.argv.slice(1);
    const { defineDeck, delegationTools, openDeck, readUsage, statusesOf, trace } = await import('@tapedeck/runtime');
    const tools = delegationTools();
    after('import');
    const deck = await openDeck(defineDeck({ home, model, tools, prompt: { project: true } }));
    after('open');
    const main = await deck.session('main');
    await main.anchor('task', { goal: 'release' });
    await deck.sessions();
    const child = await main.fork();
    await child.anchor('done', { tests: 'pass' });
    await main.merge(child);
    await statusesOf({ store: deck.store }, await deck.sessions());
    await readUsage(deck.store, await main.info());
    await trace(deck.store, 'main', 2);
    deck.graph.children('main');
    after('merge');
    console.log((await main.run('Hello')).text);
    after('run');
    await deck.close();`,
    home.path,
    `script:${answers}`,
  );
  await running.done();
  const lines = running.printed().trimEnd().split('\n');
  expect(lines.splice(3, 1)).toEqual(['Hi.']);
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    { act: 'import', ai: none, zod: none, sessions: none },
    { act: 'open', ai: none, zod: some, sessions: some },
    { act: 'merge', ai: none, zod: some, sessions: some },
    { act: 'run', ai: some, zod: some, sessions: some },
  ]);
});

test('readers of transcripts, and the parts of the package that the command line uses, load neither the AI SDK nor zod', async () => {
  await using running = startFromSources(
    `${counting}
    await import('@tapedeck/runtime/import');
    await import('@tapedeck/runtime/internal');
    after('import');`,
  );
  await running.done();
  expect(JSON.parse(running.printed())).toEqual({ act: 'import', ai: none, zod: none, sessions: none });
});
