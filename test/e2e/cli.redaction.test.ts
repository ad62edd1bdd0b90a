import { cpSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { CliResult } from '../support/cli.ts';
import { anyKey, leakingFiles, leaksIn } from '../support/planted.ts';
import { type Project, project } from '../support/project.ts';
import { startProvider } from '../support/provider.ts';
import { tokenShapes } from '../support/token-shapes.ts';

const [, token = ''] = tokenShapes.find(([name]) => name === 'github') ?? [];
const half = token.slice(0, 20);

const done = (result: CliResult): CliResult => {
  expect(result).toMatchObject({ code: 0 });
  return result;
};

const lines = (...objects: object[]) => objects.map((one) => `${JSON.stringify(one)}\n`).join('');
const result = {
  type: 'tool-result',
  toolCallId: 'c1',
  toolName: 'sh',
  output: { type: 'text', value: token },
};
const batch = lines(
  { role: 'user', content: `mine: ${token}` },
  { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'c1', toolName: 'sh', input: {} }] },
  { role: 'tool', content: [result] },
);

/** How often the token is in what a session reads. */
async function tokens(p: Project, session: string): Promise<number> {
  return done(await p.here(['log', session, '--json'])).stdout.split(token).length - 1;
}

test('an append replaces secrets in results of tools; config.yaml looks everywhere, nowhere, or for more', async () => {
  using p = project();
  const append = async (name: string, stdin: string = batch) => {
    done(await p.here(['new', name]));
    done(await p.here(['append', name], { stdin }));
  };
  await append('results');
  expect(await tokens(p, 'results')).toBe(1);
  done(await p.process(['config', 'set', 'redact', 'all']));
  await append('all');
  expect(await tokens(p, 'all')).toBe(0);
  expect(done(await p.here(['log', 'all', '--json'])).stdout).toContain('"redacted":1');
  done(await p.process(['config', 'set', 'redact', 'false']));
  await append('none');
  expect(await tokens(p, 'none')).toBe(2);
  p.write('.tape/config.yaml', 'redact:\n  in: all\n  patterns:\n    intranet: itk_[0-9]{6}\n');
  await append('more', lines({ role: 'user', content: `itk_123456 ${token}` }));
  const more = done(await p.here(['log', 'more', '--json'])).stdout;
  expect(more).toContain('[secret intranet] [secret github]');
  p.write('.tape/config.yaml', 'redact:\n  patterns:\n    intranet: (a+)+\n');
  const refused = await p.here(['append', 'more', '--json'], { stdin: batch });
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toContain('redact.patterns.intranet must not repeat a group');
});

test('a home from elsewhere does not turn the search off', async () => {
  using p = project();
  using q = project();
  done(await p.here(['new', 'main']));
  done(await p.process(['config', 'set', 'redact', 'false']));
  cpSync(p.home, q.home, { recursive: true });
  done(await q.here(['append', 'main', '--home', q.home], { stdin: batch, env: { TAPE_TRUST_HOME: '' } }));
  expect(await tokens(q, 'main')).toBe(1);
});

/** A transcript in which user, model and tool write the token. */
const transcript = lines(
  ...[
    { type: 'user', message: { role: 'user', content: `mine: ${token}` } },
    {
      type: 'assistant',
      message: {
        id: 'm1',
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: `The token is ${token}.`, signature: 'c2lnbmVk' },
          { type: 'tool_use', id: 'toolu_1', name: 'Bash', input: { command: `echo ${token}` } },
        ],
      },
    },
    {
      type: 'user',
      message: { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: token }] },
      toolUseResult: { stdout: token },
    },
    { type: 'assistant', message: { id: 'm2', role: 'assistant', content: [{ type: 'text', text: token }] } },
  ].map((record, i) => ({
    ...record,
    uuid: `00000000-0000-4000-8000-00000000000${i}`,
    parentUuid: i === 0 ? null : `00000000-0000-4000-8000-00000000000${i - 1}`,
    sessionId: '7d4c1f0e-52a6-4b8e-9c35-1e0f6a2b9d47',
    timestamp: `2026-01-01T00:00:0${i}.000Z`,
  })),
);

test('an import keeps no secret, repeats as equal, and keeps everything with --raw', async () => {
  using p = project();
  const file = p.write('transcript.jsonl', transcript);
  done(await p.here(['import', file, '--as', 'main']));
  expect(leakingFiles(p.home, { token })).toEqual([]);
  const entries = JSON.parse(done(await p.here(['log', 'main', '--all', '--json'])).stdout) as {
    meta: { redacted?: number };
  }[];
  expect(entries.filter(({ meta }) => meta.redacted !== undefined).length).toBeGreaterThan(2);
  const again = done(await p.here(['import', file, '--as', 'main', '--json']));
  expect(JSON.parse(again.stdout)).toMatchObject({ entries: 0 });
  // The file grows.
  p.write(
    'transcript.jsonl',
    transcript +
      lines({
        type: 'user',
        uuid: '00000000-0000-4000-8000-000000000009',
        parentUuid: '00000000-0000-4000-8000-000000000003',
        sessionId: '7d4c1f0e-52a6-4b8e-9c35-1e0f6a2b9d47',
        timestamp: '2026-01-01T00:01:00.000Z',
        message: { role: 'user', content: `again ${token}` },
      }),
  );
  const grown = done(await p.here(['import', file, '--as', 'main', '--json']));
  expect(JSON.parse(grown.stdout)).toMatchObject({ entries: 1 });
  expect(leakingFiles(p.home, { token })).toEqual([]);
  done(await p.here(['verify']));
  done(await p.here(['import', file, '--as', 'raw', '--raw']));
  expect(await tokens(p, 'raw')).toBeGreaterThan(3);
  const raw = done(await p.here(['import', file, '--as', 'raw', '--raw', '--json']));
  expect(JSON.parse(raw.stdout)).toMatchObject({ entries: 0 });
});

test('a token that a model streams is in no file when the process is killed in the middle of it', async () => {
  using p = project();
  p.write('.tape/config.yaml', 'redact: all\n');
  await using provider = await startProvider(
    () => ({ text: ['It is ', ...token, ' and'], hang: true }),
    anyKey,
  );
  const running = p.start(['run', 'main', 'Hi', '--model', 'openai-compatible/test-model'], {
    env: { OPENAI_API_KEY: 'not-a-key', OPENAI_BASE_URL: provider.url },
  });
  await running.until('[secret github]');
  await expect.poll(() => readFileSync(`${p.home}/tape.db-wal`).includes('[secret github]')).toBe(true);
  running.child.kill('SIGKILL');
  const killed = await running.done;
  const parts = { token, half };
  expect(leaksIn(parts, killed.stdout + killed.stderr)).toEqual([]);
  expect(leakingFiles(p.home, parts)).toEqual([]);
  done(await p.process(['recover', '--abort']));
  expect(leakingFiles(p.home, parts)).toEqual([]);
});

test('nor is the half of it, when the process is killed before the rest', async () => {
  using p = project();
  p.write('.tape/config.yaml', 'redact: all\n');
  await using provider = await startProvider(() => ({ text: ['It is ', ...half], hang: true }), anyKey);
  const running = p.start(['run', 'main', 'Hi', '--model', 'openai-compatible/test-model'], {
    env: { OPENAI_API_KEY: 'not-a-key', OPENAI_BASE_URL: provider.url },
  });
  await running.until('It is');
  await new Promise((resolve) => setTimeout(resolve, 300));
  running.child.kill('SIGKILL');
  const killed = await running.done;
  expect(leaksIn({ half }, killed.stdout + killed.stderr)).toEqual([]);
  expect(leakingFiles(p.home, { half })).toEqual([]);
});
