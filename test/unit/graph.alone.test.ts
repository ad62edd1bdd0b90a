import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';

/** The packages that a module of ours loads, in a process of its own. */
function packagesOf(specifier: string): string[] {
  const script = `import { registerHooks } from 'node:module';
    const seen = new Set();
    registerHooks({ resolve(specifier, context, next) {
      if (!/^(?:node:|\\.|\\/|file:)/.test(specifier)) seen.add(specifier);
      return next(specifier, context);
    } });
    await import(process.argv[1]);
    console.log(JSON.stringify([...seen].sort()));`;
  const out = execFileSync(
    process.execPath,
    ['--conditions=@tapedeck/source', '--input-type=module', '-e', script, specifier],
    { cwd: import.meta.dirname, encoding: 'utf8' },
  );
  return JSON.parse(out);
}

test('a graph file can be read without the store', () => {
  expect(packagesOf('@tapedeck/graph')).toEqual(['@tapedeck/graph', '@tapedeck/tape/errors', 'zod']);
});

test('a program that only writes the journal loads nothing else but the base of the errors', () => {
  expect(packagesOf('@tapedeck/graph/journal')).toEqual(['@tapedeck/graph/journal', '@tapedeck/tape/errors']);
});
