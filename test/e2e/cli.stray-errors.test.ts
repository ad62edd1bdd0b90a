import { openTapeStore } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { json, jsonError } from '../support/cli.ts';
import { type Project, project } from '../support/project.ts';

/** A project with a tool that misbehaves and one that takes its time, and a model that calls both. */
async function projectWith(bad: string, { slow = 'await sleep(300);', top = '' } = {}): Promise<Project> {
  const p = project();
  p.write(
    'tape.config.mts',
    `import { setTimeout as sleep } from 'node:timers/promises';
     import { z } from 'zod';
     ${top}
     const inputSchema = z.object({});
     export default { model: 'script:answers.json', tools: {
       bad: { inputSchema, execute: async () => { ${bad} } },
       slow: { inputSchema, execute: async (_, { abortSignal: signal }) => { ${slow} return 'waited'; } },
     } };`,
  );
  p.write('answers.json', [
    { toolCalls: [{ name: 'bad', input: {} }] },
    { toolCalls: [{ name: 'slow', input: {} }] },
    { text: 'All done.' },
  ]);
  expect((await p.here(['trust', '.'])).code).toBe(0);
  expect((await p.here(['new', 'main'])).code).toBe(0);
  return p;
}

const entries = (p: Project) => {
  using store = openTapeStore(`${p.home}/tape.db`, { readonly: true });
  return [...store.entries.read('main')];
};

test.each([
  ['a rejection', `Promise.reject(new Error('left behind')); return 'ok';`],
  ['a later rejection', `setTimeout(() => Promise.reject(new Error('left behind')), 50); return 'ok';`],
  ['a throw in a callback', `setTimeout(() => { throw new Error('left behind'); }, 50); return 'ok';`],
])('%s that a tool leaves behind is recorded and reported, and the run continues', async (_, body) => {
  using p = await projectWith(body);
  const result = await p.process(['run', 'main', 'Go.', '--json']);
  expect(result).toMatchObject({ code: 0 });
  expect(json(result)).toMatchObject({ text: 'All done.' });
  expect(result.stderr.match(/left behind/g)).toHaveLength(1);
  expect(result.stderr).toContain(
    "Warning: tool 'bad' of main left an error that nothing handled: left behind\n",
  );
  expect(entries(p).filter(({ name }) => name === 'tool/stray-error')).toMatchObject([
    { kind: 'event', payload: { tool: 'bad', message: 'left behind' } },
  ]);
});

test('a throw that no tool left stops what runs, and is the error of the command', async () => {
  using p = await projectWith(`return 'ok';`, {
    slow: 'isAtWork = true; await sleep(60_000, undefined, { signal });',
    // No tool starts the timer, and it throws once one is at work.
    top: `let isAtWork = false;
      const timer = setInterval(() => {
        if (!isAtWork) return;
        clearInterval(timer);
        throw new Error('out of order');
      }, 10);`,
  });
  const result = await p.process(['run', 'main', 'Go.', '--json', '--quiet']);
  expect(result.code).toBe(1);
  expect(json({ ...result, code: 0 })).toMatchObject({ finish: 'aborted' });
  const [error = ''] = result.stderr.split('\n');
  expect(jsonError({ ...result, stdout: '', stderr: error })).toMatchObject({
    code: 'CLI_FAILED',
    message: 'out of order',
  });
  expect(entries(p).map(({ name }) => name)).toContain('run/aborted');
  expect(json(await p.here(['status', 'main', '--json']))).toMatchObject([{ state: 'idle' }]);
});

test('a tool that ends the process does not make the command succeed', async () => {
  using p = await projectWith('process.exit(0);');
  const result = await p.process(['run', 'main', 'Go.', '--json', '--quiet']);
  expect(result.code).toBe(1);
  expect(jsonError(result)).toMatchObject({ code: 'CLI_EXITED' });
  const text = await p.process(['run', 'other', 'Go.']);
  expect(text.code).toBe(1);
  expect(text.stderr).toContain('Error: the process ended before the command was done');
});
