import { writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type TempHome, tempHome } from '../support/temp-home.ts';

const routes = `routes:
  - name: known-dm
    match: { principal: { type: known }, delivery: { peer_kind: dm } }
    session: { key: "dm:{principal.entity_id}", persona: atlas }
  - name: unknown-dm
    match: { principal: { type: unknown }, delivery: { peer_kind: dm } }
    session: { key: "dm:{delivery.channel}:{delivery.sender_id}", persona: atlas }
`;
const personas = `personas:
  atlas:
    instructions: You are Atlas.
    settings: { temperature: 0.2 }
    tools: [look]
    permissions: deny exec(*)
`;

const delivery = (sender_id: string, principal: object = { type: 'unknown' }) =>
  JSON.stringify({ principal, delivery: { channel: 'sms', sender_id, peer_kind: 'dm' } });
const known = { type: 'known', entity_id: 'entity_mom' };

function configured(text: string): TempHome {
  const home = tempHome();
  home.open().close();
  writeFileSync(home.file('config.yaml'), text);
  return home;
}

test('a delivery leads to the session of its route, which is promoted later and keeps what its persona was', async () => {
  using home = configured(personas + routes);
  const resolve = async (...args: readonly string[]) => {
    const { stdout, stderr, code } = await home.here(['resolve', ...args, '--json']);
    expect([code, stderr]).toEqual([0, '']);
    return JSON.parse(stdout) as Record<string, unknown>;
  };
  const first = await resolve('--delivery', delivery('+1'));
  expect(first).toMatchObject({
    ...{ session: 'dm:sms:+1', tape: 'atlas:dm:sms:+1', persona: 'atlas', route: 'unknown-dm' },
    ...{ how: 'created', created: true, lifecycle: 'active', head: 1, message_count: 0 },
  });
  const { id } = first;
  expect(await resolve('--delivery', delivery('+1', known), '--dry-run')).toMatchObject({
    id,
    how: 'promoted',
  });
  expect(await resolve('--delivery', delivery('+1', known))).toMatchObject({ id, how: 'promoted' });
  expect(await resolve('dm:entity_mom')).toMatchObject({
    id,
    persona: 'atlas',
    how: 'alias',
    created: false,
  });
  const { stdout } = await home.here(['show', 'dm:entity_mom@1', '--base', 'atlas', '--json']);
  expect(JSON.parse(stdout)).toMatchObject({
    payload: {
      settings: {
        ...{ instructions: 'You are Atlas.', call: { temperature: 0.2 } },
        ...{ tools: ['look'], rules: ['deny exec(*)'] },
      },
    },
  });
  expect((await home.here(['resolve', 'dm:entity_mom', '--quiet'])).stdout).toBe(`${String(id)}\n`);
  // What the id of a session of another realm names is run there, and nothing is made beside it.
  writeFileSync(home.file('answers.json'), '[{"text":"Hello."}]');
  const sent = await home.here(['send', String(id), 'Hi', '--model', `script:${home.file('answers.json')}`]);
  expect(sent).toMatchObject({ code: 0, stdout: 'Hello.\n' });
  using store = home.open();
  expect(store.sessions.list({ all: true })).toEqual([]);
  expect(store.sessions.find(String(id))).toMatchObject({ messageCount: 2 });
});

test('routes and personas that cannot be used are refused with their line', async () => {
  for (const [text, says] of [
    [routes, 'line 4: routes.0.session.persona names "atlas", which is not in personas'],
    [
      personas + routes.replace('sender_id', 'sender'),
      'line 13: routes.1.session.key has {delivery.sender}, which no delivery has (did you mean delivery.sender_id',
    ],
    [
      personas + routes.replace('unknown }', 'stranger }'),
      'line 12: routes.1.match.principal.type must be known or unknown',
    ],
    [personas + routes.replace('match', 'matches'), 'line 9: routes.0.matches unknown field'],
    [personas.replace('tools', 'tool'), 'line 5: personas.atlas.tool is no field of a persona'],
    [personas.replace('deny exec', 'forbid exec'), 'line 6: personas.atlas.permissions is no rule'],
    [personas.replace('0.2', '7'), 'personas.atlas.settings.temperature'],
    [personas.replace('atlas', '__proto__'), 'line 2: personas.__proto__ cannot have this name'],
    [personas.replace('atlas', '"a:b"'), 'line 2: personas.a:b cannot have this name'],
    ['routes: 7\n', 'line 1: routes must be a list of routes'],
    ['personas: []\n', 'line 1: personas must be an object of personas'],
  ] as const) {
    using home = configured(text);
    const { code, stderr } = await home.here(['resolve', 'dm:x']);
    expect([code, stderr], text).toEqual([2, expect.stringContaining(says)]);
  }
});

test('keys, deliveries and links that cannot be are refused, with exit codes', async () => {
  using home = configured(personas + routes);
  for (const [line, code, says] of [
    [['resolve'], 2, 'give a key, or a delivery'],
    [['resolve', 'dm:a:b:c'], 2, 'as a session key'],
    [['resolve', `dm:${'x'.repeat(100_000)}`], 2, 'more than 1000'],
    [['resolve', 'worker:01ARZ3NDEKTSV4RRFFQ69G5FAV'], 3, 'there is no such session'],
    [['resolve', '--delivery', '{'], 2, 'JSON'],
    [['resolve', '--delivery', delivery('')], 2, 'delivery.sender_id is empty'],
    [['resolve', '--delivery', '{"channel":"x","peer_kind":"group","__proto__":{}}'], 2, '__proto__'],
    [['resolve', '--delivery', '{"channel":"x","peer_kind":"group"}'], 3, 'no route matches it'],
    [['resolve', 'dm:x', '--persona', 'atlsa'], 2, "did you mean 'atlas'"],
    [['identity', 'link', 'dm:mom'], 2, 'an address is missing'],
    [['identity', 'link', 'dm:mom', 'dm:mom'], 2, 'itself'],
    [['identity', 'link', 'dm:mom', 'group:a:b'], 2, 'only dm: keys'],
    [['identity', 'unlink', 'dm:mom'], 3, 'no session stands for it'],
    [['identity', 'list', 'dm:mom'], 2, 'too many arguments'],
  ] as const) {
    const { code: exit, stderr } = await home.here([...line]);
    expect([exit, stderr], line.join(' ').slice(0, 80)).toEqual([code, expect.stringContaining(says)]);
  }
  expect((await home.here(['identity', 'link', 'dm:mom', 'dm:sms:1'])).code).toBe(0);
  const other = await home.here(['identity', 'link', 'dm:dad', 'dm:sms:1']);
  expect([other.code, other.stderr]).toEqual([
    4,
    expect.stringContaining('tape identity unlink dm:mom dm:sms:1'),
  ]);
});

test('routes and personas of a home that came from elsewhere do not count', async () => {
  using home = configured(personas + routes);
  const env = { TAPE_TRUST_HOME: '', HOME: home.file('user') };
  const { code, stderr } = await home.here(['resolve', '--delivery', delivery('+1')], { env });
  expect([code, stderr]).toEqual([
    3,
    expect.stringMatching(/Ignored routes, personas of .*\n.*there are no routes/),
  ]);
});
