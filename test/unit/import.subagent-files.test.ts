import { cpSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { SourceTable } from '@tapedeck/runtime/import';
import type { SqliteTapeStore } from '@tapedeck/tape';
import { expect, test } from 'vitest';
import { importFiles } from '../support/import-files.ts';
import { openStore } from '../support/store.ts';
import { tempDir } from '../support/temp-dir.ts';
import { calls, jsonl, model, person, returns, says } from '../support/transcript.ts';

const main = jsonl([
  person({ uuid: 'u1' }, 'look around'),
  model({ uuid: 'a1', parent: 'u1' }, [calls('t1', 'Task')]),
  person({ uuid: 'r1', parent: 'a1' }, [returns('t1', 'all is well')], { toolUseResult: { agentId: 'x1' } }),
]);
const inside = { isSidechain: true, agentId: 'x1' };
const own = [
  person({ uuid: 'su1' }, 'look', inside),
  model({ uuid: 'sa1', parent: 'su1', id: 'sm1' }, [says('all')], {
    ...{ ...inside, usage: { output_tokens: 7 } },
  }),
  model({ uuid: 'sa2', parent: 'sa1', id: 'sm2' }, [says('is well')], inside),
];
const folder = 's-1/subagents';
const named = `${folder}/agent-x1.jsonl`;

type Dir = ReturnType<typeof tempDir>;

/** What a home has of a session with one subagent, whatever its files are called. */
function told(store: SqliteTapeStore) {
  return {
    sessions: store.sessions
      .list({ all: true })
      .toSorted((a, b) => (a.session < b.session ? -1 : 1))
      .map(({ session, title, parent, delivery }) => [session, title, parent, delivery]),
    outputs: [...store.entries.read('s-1')].filter(({ key }) => key?.includes('tool-results')).length,
    tokens: store.sessions.calls().reduce((sum, { usage }) => sum + usage.output, 0),
  };
}

test.each<[string, (dir: Dir) => void]>([
  ['the name that Claude Code gave it', () => {}],
  ['another name', (dir) => renameSync(dir.file(named), dir.file(`${folder}/agent-x1-old.jsonl`))],
  ['a name of nothing', (dir) => renameSync(dir.file(named), dir.file(`${folder}/backup.jsonl`))],
  ['a copy beside it', (dir) => cpSync(dir.file(named), dir.file(`${folder}/agent-x1 copy.jsonl`))],
  ['an older copy', (dir) => writeFileSync(dir.file(`${folder}/agent-a.jsonl`), jsonl(own.slice(0, 1)))],
  ['a copy beside its session', (dir) => cpSync(dir.file(named), dir.file('agent-x1.jsonl'))],
  ['the folder of its session under another name', (dir) => renameSync(dir.file('s-1'), dir.file('old'))],
  [
    'a copy of the folder of its session',
    (dir) => cpSync(dir.file('s-1'), dir.file('old'), { recursive: true }),
  ],
  [
    'a copy in the folder of another session',
    (dir) => {
      mkdirSync(dir.file('s-2/subagents'), { recursive: true });
      cpSync(dir.file(named), dir.file('s-2/subagents/agent-x1.jsonl'));
    },
  ],
])('a subagent is one session with its tokens once, with %s', async (_, act) => {
  using dir = tempDir();
  mkdirSync(dirname(dir.file(named)), { recursive: true });
  writeFileSync(dir.file('s-1.jsonl'), main);
  writeFileSync(dir.file(named), jsonl(own));
  writeFileSync(dir.file(`${folder}/agent-x1.meta.json`), '{"description":"Look","toolUseId":"t1"}');
  mkdirSync(dir.file('s-1/tool-results'));
  writeFileSync(dir.file('s-1/tool-results/t1.txt'), 'all of it');
  const expected = {
    sessions: [
      ['agent-x1', 'Look', 's-1', 'merged'],
      ['s-1', undefined, undefined, undefined],
    ],
    outputs: 1,
    tokens: 7,
  };
  const later = openStore();
  await importFiles(later, [dir.path], { clean: false });
  act(dir);
  await importFiles(later, [dir.path], { clean: false });
  expect(told(later)).toEqual(expected);
  const at = openStore();
  await importFiles(at, [dir.path], { clean: false });
  expect(told(at)).toEqual(expected);
});

test.each(['s-1.bak.jsonl', 's-1 (copy).jsonl', 's-1-old.jsonl'])(
  'a subagent belongs to the file by whose name its folder is called, and not to the older copy %s beside it',
  async (copy) => {
    using dir = tempDir();
    mkdirSync(dirname(dir.file(named)), { recursive: true });
    writeFileSync(dir.file(copy), main.slice(0, main.indexOf('\n') + 1));
    writeFileSync(dir.file('s-1.jsonl'), main);
    writeFileSync(dir.file(named), jsonl(own));
    const store = openStore();
    await importFiles(store, [dir.path]);
    expect(told(store).sessions).toEqual([
      ['agent-x1', undefined, 's-1', 'merged'],
      ['s-1', undefined, undefined, undefined],
    ]);
  },
);

const started = jsonl([
  person({ uuid: 'u1' }, 'look around'),
  model({ uuid: 'a1', parent: 'u1' }, [calls('t1', 'Workflow')]),
  person({ uuid: 'r1', parent: 'a1' }, [returns('t1', 'launched')], { toolUseResult: { runId: 'wf_1' } }),
]);

test.each([
  ['that was called', { [named]: jsonl(own) }, main],
  [
    'of a workflow',
    {
      [`${folder}/workflows/wf_1/agent-x1.jsonl`]: jsonl(own),
      [`${folder}/workflows/wf_1/journal.jsonl`]: jsonl([
        { type: 'result', agentId: 'x1', result: 'is well' },
      ]),
    },
    started,
  ],
])(
  'a subagent %s stays merged where a copy of its session comes without it, in which a later prompt was typed anew',
  async (_, files, beginning) => {
    using dir = tempDir();
    mkdirSync(dir.file('elsewhere'));
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(dirname(dir.file(file)), { recursive: true });
      writeFileSync(dir.file(file), text);
    }
    const prompt = (uuid: string) => jsonl([person({ uuid, parent: 'r1' }, `prompt ${uuid}`)]);
    writeFileSync(dir.file('s-1.jsonl'), beginning + prompt('u2'));
    writeFileSync(dir.file('elsewhere/s-1.jsonl'), beginning + prompt('u2') + prompt('u3'));
    const store = openStore();
    const merged = () => {
      const children = store.sessions.list({ parent: 's-1' }).filter(({ kind }) => kind === 'subagent');
      return children.map(({ session, delivery, undone = false }) => ({ session, delivery, undone }));
    };
    const expected = [{ session: 'agent-x1', delivery: 'merged', undone: false }];
    await importFiles(store, [dir.file('s-1.jsonl'), dir.file('s-1')]);
    expect(merged()).toEqual(expected);
    await importFiles(store, [dir.file('elsewhere')]);
    expect(merged()).toEqual(expected);
    expect(store.sessions.find('s-1-branch-u2')).toBeDefined();
  },
);

test.each([
  ['after', ['here', 'elsewhere']],
  ['before', ['elsewhere', 'here']],
  ['with', ['.']],
])(
  'a subagent is merged where its result came, with a copy that was rewound to before its call, and read %s its file',
  async (_, order) => {
    using dir = tempDir();
    using homes = tempDir();
    const begun = [
      person({ uuid: 'u0' }, 'hi'),
      model({ uuid: 'a0', parent: 'u0', id: 'm0' }, [says('hello')]),
    ];
    const first = [
      person({ uuid: 'u1', parent: 'a0' }, 'look around'),
      model({ uuid: 'a1', parent: 'u1' }, [calls('t1', 'Task')]),
      person({ uuid: 'r1', parent: 'a1' }, [returns('t1', 'all is well')], {
        toolUseResult: { agentId: 'x1' },
      }),
    ];
    const anew = person({ uuid: 'u2', parent: 'a0' }, 'look elsewhere');
    mkdirSync(dirname(dir.file(`here/${named}`)), { recursive: true });
    writeFileSync(dir.file('here/s-1.jsonl'), jsonl([...begun, ...first]));
    writeFileSync(dir.file(`here/${named}`), jsonl(own));
    mkdirSync(dir.file('elsewhere'));
    writeFileSync(dir.file('elsewhere/s-1.jsonl'), jsonl([...begun, ...first, anew]));
    const placed = async (name: string) => {
      const store = openStore();
      const table = SourceTable.open(homes.file(name));
      for (const one of order) await importFiles(store, [dir.file(one)], { table });
      const left = new Set(store.sessions.list({ all: true, deleted: false }).map(({ session }) => session));
      expect(left).toEqual(new Set(['s-1', 's-1-branch-u1', 'agent-x1']));
      const [agent] = store.sessions.list({ parent: 's-1-branch-u1' });
      return [agent?.session, agent?.delivery, agent?.undone, told(store).tokens];
    };
    const expected = ['agent-x1', 'merged', undefined, 7];
    expect(await placed('without')).toEqual(expected);
    cpSync(dir.file('here/s-1'), dir.file('elsewhere/s-1'), { recursive: true });
    expect(await placed('beside')).toEqual(expected);
  },
);
