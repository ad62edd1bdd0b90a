import { type DeckOptions, type IncomingDelivery, parseConfig, type Route } from '@tapedeck/runtime';
import { user } from '@tapedeck/tape';
import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { scriptedDeck } from '../support/scripted.ts';

const routes: readonly Route[] = [
  {
    name: 'known-dm',
    match: { principal: { type: 'known' }, delivery: { peer_kind: 'dm' } },
    session: { key: 'dm:{principal.entity_id}', persona: 'atlas' },
  },
  {
    name: 'unknown-dm',
    match: { principal: { type: 'unknown' }, delivery: { peer_kind: 'dm' } },
    session: { key: 'dm:{delivery.channel}:{delivery.sender_id}', persona: 'atlas' },
  },
  {
    name: 'thread',
    match: { delivery: { peer_kind: 'group', thread_id: true } },
    session: {
      key: 'group:{delivery.channel}:{delivery.peer_id}:thread:{delivery.thread_id}',
      persona: 'atlas',
    },
  },
  {
    name: 'group-session',
    match: { delivery: { peer_kind: 'group' } },
    session: { key: 'group:{delivery.channel}:{delivery.peer_id}', persona: 'atlas' },
  },
  { name: 'nightly', match: { delivery: { channel: 'timer' } }, session: { key: 'system:heartbeat' } },
];
const personas = { atlas: {}, hermes: {} };
const deckOf = (options: Omit<DeckOptions, 'home' | 'store'> = {}) =>
  scriptedDeck([{ text: 'Hello.' }], { routes, personas, ...options });

const known = { type: 'known', entity_id: 'entity_mom' } as const;
const dm = (channel: string, sender_id: string): IncomingDelivery['delivery'] => ({
  channel,
  sender_id,
  peer_kind: 'dm',
});
const phone = dm('imessage', '+1555');
const mail = dm('gmail', 'mom@gmail.com');

test('a table of policies gives each delivery its key, and an id cannot leave its place in it', async () => {
  await using home = await deckOf();
  const keyOf = async (delivery: IncomingDelivery) => (await home.deck.identities.preview(delivery)).key;
  expect(await keyOf({ principal: known, delivery: phone })).toBe('dm:entity_mom');
  expect(await keyOf({ principal: { type: 'unknown' }, delivery: phone })).toBe('dm:imessage:+1555');
  expect(await keyOf({ delivery: phone })).toBe('dm:imessage:+1555');
  const group = { channel: 'slack', peer_kind: 'group', peer_id: 'C1', sender_id: 'U1' } as const;
  expect(await keyOf({ delivery: group })).toBe('group:slack:C1');
  expect(await keyOf({ delivery: { ...group, thread_id: '9' } })).toBe('group:slack:C1:thread:9');
  expect(await keyOf({ delivery: { channel: 'timer', peer_kind: 'system' } })).toBe('system:heartbeat');
  expect(await keyOf({ delivery: { ...group, peer_id: 'C1:thread:9' } })).toBe('group:slack:C1%3Athread%3A9');
  expect(await keyOf({ principal: { entity_id: 'imessage:+1555' }, delivery: phone })).toBe(
    'dm:imessage%3A+1555',
  );
  // The fields of a delivery may stand beside its principal.
  expect(await keyOf({ ...phone, principal: known } as never)).toBe('dm:entity_mom');
  expect(home.store.sessions.list({ allRealms: true })).toEqual([]);
});

test('a sender who is known from now on goes on in the session of the first messages', async () => {
  await using home = await deckOf();
  const { deck } = home;
  const first = await deck.route({ delivery: phone });
  expect(first).toMatchObject({
    how: 'created',
    route: 'unknown-dm',
    persona: 'atlas',
    meta: { channel: 'imessage', sender: '+1555' },
  });
  const info = await first.session.info();
  expect(info).toMatchObject({
    tape: 'atlas:dm:imessage:+1555',
    lifecycle: 'active',
    head: 1,
    messageCount: 0,
  });
  await first.session.run('Hello', { meta: first.meta });
  const promoted = await deck.route({ principal: known, delivery: phone });
  expect([promoted.how, promoted.session.id]).toEqual(['promoted', first.session.id]);
  expect((await deck.route({ principal: known, delivery: phone })).how).toBe('alias');
  // On another channel, too; and what she wrote there before she was known is quiet from then on.
  const other = await deck.route({ delivery: mail });
  expect(other.how).toBe('created');
  for (const principal of [known, undefined])
    expect((await deck.route({ ...(principal && { principal }), delivery: mail })).session.id).toBe(
      first.session.id,
    );
  expect(await deck.identities.list()).toMatchObject([
    { primary: { id: first.session.id }, quiet: [{ id: other.session.id }], keys: ['dm:entity_mom'] },
  ]);
  await deck.identities.unlink('dm:entity_mom', ['dm:gmail:mom@gmail.com']);
  expect((await deck.route({ delivery: mail })).session.id).toBe(other.session.id);
  expect((await deck.identities.resolve('dm:entity_mom')).session.id).toBe(first.session.id);
});

test('a session that a delivery starts runs as its persona, and two personas have sessions of one key', async () => {
  const look = tool({ inputSchema: z.strictObject({}), execute: async () => 'seen' });
  const script = [{ toolCalls: [{ name: 'pay', input: {}, id: 'p1' }] }, { text: 'Done.' }];
  await using home = await scriptedDeck(script, { instructions: 'Those of the deck.' });
  await using personal = await scriptedDeck(script, {
    store: home.store,
    instructions: 'Those of the deck.',
    tools: { look, pay: look },
    routes: [
      {
        name: 'h',
        match: { delivery: { channel: 'mail' } },
        session: { key: 'dm:{delivery.sender_id}', persona: 'hermes' },
      },
      { name: 'a', session: { key: 'dm:{delivery.sender_id}', persona: 'atlas' } },
    ],
    personas: {
      atlas: { instructions: 'You are Atlas.', model: home.spec, tools: ['look'], permissions: 'deny look' },
      hermes: { instructions: 'You are Hermes.' },
    },
  });
  const { deck } = personal;
  const atlas = (await deck.route({ delivery: dm('chat', 'u1') })).session;
  const hermes = (await deck.route({ delivery: dm('mail', 'u1') })).session;
  expect([atlas.tape, hermes.tape]).toEqual(['atlas:dm:u1', 'hermes:dm:u1']);
  expect((await atlas.instructions()).text).toBe('You are Atlas.');
  expect((await hermes.instructions()).text).toBe('You are Hermes.');
  await atlas.run('Pay');
  const [result] = home.store.entries.read(atlas.id, { kind: 'tool-result' });
  expect(JSON.stringify(result?.payload)).toMatch(/may not be used in this session/);
  expect((await atlas.permits({ tool: 'look', input: {} })).verdict).toBe('deny');
  const [start] = home.store.entries.read(atlas.id, { to: 1 });
  expect(start?.payload).toMatchObject({ settings: { model: home.spec, tools: ['look'] } });
  await expect(deck.identities.resolve('dm:u1')).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
    data: { personas: ['hermes', 'atlas'] },
  });
  expect((await deck.identities.resolve('dm:u1', { persona: 'hermes' })).session.id).toBe(hermes.id);
  await expect(deck.identities.resolve('dm:u1', { persona: 'atlsa' })).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
    data: { near: ['atlas'] },
  });
  await expect(deck.identities.resolve('dm:u1', { persona: '__proto__' })).rejects.toMatchObject({
    code: 'SESSION_BAD_INPUT',
  });
});

test('a recovery continues the sessions of all personas, and one that is named by its id', async () => {
  await using home = await deckOf({ personas: { ...personas, hermes: {} } });
  const { session } = await home.deck.route({ delivery: phone });
  home.store.entries.append(session.id, [user('Pay')]);
  const chunks = [{ index: 0, chunk: { type: 'text-delta', id: '0', delta: 'I' } }];
  home.store.live.save([{ session: session.id, run: 'r1', chunks }]);
  expect(await home.deck.recover({ dryRun: true })).toMatchObject({ sessions: [{ id: session.id }] });
  expect((await home.deck.recover(session.id, { dryRun: true })).sessions).toHaveLength(1);
  expect(await home.deck.recover()).toMatchObject({ resumed: ['dm:imessage:+1555'], failed: [] });
  expect((await home.deck.recover()).sessions).toEqual([]);
  expect((await session.info()).messageCount).toBe(2);
});

test.each<[name: string, delivery: unknown, field: string | undefined, says: RegExp]>([
  ['no object', 'dm:x', '', /must be an object/],
  ['nothing', undefined, '', /must be an object/],
  ['an empty one', {}, 'delivery.channel', /is missing/],
  ['no kind of place', { delivery: { channel: 'x' } }, 'delivery.peer_kind', /is missing/],
  [
    'another kind of place',
    { delivery: { ...phone, peer_kind: 'cave' } },
    'delivery.peer_kind',
    /'dm' or 'group'/,
  ],
  ['an empty sender', { delivery: { ...phone, sender_id: '' } }, 'delivery.sender_id', /is empty/],
  [
    'no sender',
    { delivery: { channel: 'x', peer_kind: 'dm' } },
    'delivery.sender_id',
    /by 'unknown-dm'.*is missing/,
  ],
  ['a number', { delivery: { ...phone, sender_id: 1555 } }, 'delivery.sender_id', /must be a text/],
  [
    'a misspelt field',
    { delivery: { ...phone, sender: 'x' } },
    'delivery.sender',
    /did you mean delivery.sender_id/,
  ],
  [
    'half of a character',
    { delivery: { ...phone, sender_id: '\ud800' } },
    'delivery.sender_id',
    /well-formed/,
  ],
  [
    'a megabyte',
    { delivery: { ...phone, sender_id: 'x'.repeat(1_000_000) } },
    'delivery.sender_id',
    /more than 1000/,
  ],
  [
    'a known sender without an entity',
    { principal: { type: 'known' }, delivery: phone },
    'principal.entity_id',
    /is missing/,
  ],
  [
    'an unknown one with an entity',
    { principal: { type: 'unknown', entity_id: 'x' }, delivery: phone },
    'principal.entity_id',
    /not unknown/,
  ],
  ['a principal of another kind', { principal: 'mom', delivery: phone }, 'principal', /must be an object/],
  [
    'a prototype',
    JSON.parse('{"delivery":{"channel":"x","peer_kind":"dm","__proto__":{"sender_id":"y"}}}'),
    'delivery.__proto__',
    /is no field/,
  ],
  [
    'what no route matches',
    { delivery: { channel: 'x', peer_kind: 'system' } },
    undefined,
    /no route matches it \(known-dm/,
  ],
])('a delivery with %s is refused, and no session is made', async (_, delivery, field, says) => {
  await using home = await deckOf();
  const refused = expect.objectContaining({
    code: field === undefined ? 'SESSION_NO_ROUTE' : 'SESSION_BAD_INPUT',
    message: expect.stringMatching(says),
    ...(field !== undefined && { data: expect.objectContaining({ field }) }),
  });
  await expect(home.deck.route(delivery as never)).rejects.toEqual(refused);
  expect(home.store.sessions.list({ allRealms: true, all: true })).toEqual([]);
});

test('only keys of people are linked, and what is archived gets nothing', async () => {
  await using home = await deckOf();
  const { identities } = home.deck;
  for (const [key, addresses] of [
    ['group:slack:C1', ['dm:x:1']],
    ['dm:mom', ['system:x']],
    ['dm:mom', ['no key']],
    ['dm:mom', 'dm:x:1'],
  ] as const)
    await expect(identities.link(key, addresses as never)).rejects.toMatchObject({
      code: 'SESSION_BAD_INPUT',
    });
  await expect(identities.link('dm:mom', ['dm:mom'])).rejects.toMatchObject({ code: 'TAPE_BAD_OPTION' });
  const { session } = await home.deck.route({ delivery: phone });
  home.store.sessions.update(session.id, { lifecycle: 'archived' });
  await expect(home.deck.route({ delivery: phone })).rejects.toMatchObject({ code: 'TAPE_ARCHIVED' });
  home.store.sessions.purge(session.id, 'a test');
  const next = await home.deck.route({ delivery: phone });
  expect([next.how, next.session.tape]).toEqual(['created', 'atlas:dm:imessage:+1555~2']);
});

test.each<[name: string, config: object, field: string, says: string]>([
  ['no list', { routes: {} }, 'routes', 'must be a list of routes'],
  ['an unknown field', { routes: [{ ...routes[0], matches: {} }] }, 'routes.0.matches', 'unknown field'],
  [
    'two of one name',
    { personas, routes: [routes[0], routes[0]] },
    'routes.1.name',
    'is the name of an earlier route',
  ],
  [
    'a persona that is not there',
    { routes: [routes[0]] },
    'routes.0.session.persona',
    'names "atlas", which is not in personas',
  ],
  [
    'an inherited persona',
    { personas, routes: [{ name: 'x', session: { key: 'dm:x', persona: 'toString' } }] },
    'routes.0.session.persona',
    'names "toString"',
  ],
  [
    'an unknown field in a template',
    { routes: [{ name: 'x', session: { key: 'dm:{delivery.sender}' } }] },
    'routes.0.session.key',
    'did you mean delivery.sender_id',
  ],
  [
    'a template of no key',
    { routes: [{ name: 'x', session: { key: '{delivery.sender_id}' } }] },
    'routes.0.session.key',
    'makes no session key',
  ],
  [
    'an open brace',
    { routes: [{ name: 'x', session: { key: 'dm:{delivery.sender_id' } }] },
    'routes.0.session.key',
    'makes no session key',
  ],
  [
    'a worker',
    { routes: [{ name: 'x', session: { key: 'worker:01ARZ3NDEKTSV4RRFFQ69G5FAV' } }] },
    'routes.0.session.key',
    'names a worker',
  ],
  [
    'another kind of place',
    { routes: [{ name: 'x', match: { delivery: { peer_kind: 'dms' } }, session: { key: 'dm:x' } }] },
    'routes.0.match.delivery.peer_kind',
    'must be one of dm, group, thread, system',
  ],
  [
    'another principal',
    { routes: [{ name: 'x', match: { principal: { type: 'friend' } }, session: { key: 'dm:x' } }] },
    'routes.0.match.principal.type',
    'must be known or unknown',
  ],
  ['a bad name', { personas: { 'a:b': {} } }, 'personas.a:b', "it has ':'"],
  [
    'the name of a prototype',
    { personas: JSON.parse('{"__proto__":{"model":7}}') },
    'personas.__proto__',
    'every object has it',
  ],
  [
    'a model that is none',
    { personas: { atlas: { model: 'gpt' } } },
    'personas.atlas.model',
    'must be PROVIDER/MODEL',
  ],
  [
    'a rule that is none',
    { personas: { atlas: { permissions: 'forbid x' } } },
    'personas.atlas.permissions',
    'is no rule',
  ],
])('routes and personas with %s are refused', async (_, config, field, says) => {
  await expect(parseConfig(config)).rejects.toMatchObject({
    code: 'SESSION_BAD_CONFIG',
    data: { field },
    message: expect.stringContaining(says),
  });
});
