import type { DeckOptions, IncomingDelivery, Route } from '@tapedeck/runtime';
import type { SqliteTapeStore } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';

/** The channels over which one person writes. */
export const channels = ['imessage', 'gmail', 'slack'] as const;

const routes: readonly Route[] = [
  {
    name: 'known-dm',
    match: { principal: { type: 'known' } },
    session: { key: 'dm:{principal.entity_id}', persona: 'atlas' },
  },
  { name: 'unknown-dm', session: { key: 'dm:{delivery.channel}:{delivery.sender_id}', persona: 'atlas' } },
];

/** The configuration of all who deliver. */
export const deliveryConfig: Pick<DeckOptions, 'routes' | 'personas'> = { routes, personas: { atlas: {} } };

/** What a channel says of a message of the person. */
export function deliveryOf(channel: string, isKnown = true): IncomingDelivery {
  return {
    ...(isKnown && { principal: { type: 'known', entity_id: 'entity_mom' } as const }),
    delivery: { channel, peer_kind: 'dm', sender_id: `mom on ${channel}` },
  };
}

/** What is wrong with a home after the messages of each channel were delivered, each by several. */
export function deliveryFaults(store: SqliteTapeStore, messages: number): readonly string[] {
  const atlas = store.inRealm('atlas');
  const sessions = atlas.sessions.list({ all: true }).map(({ session }) => session);
  const aliases = [...atlas.lineage.read({ types: ['alias'] })].map(({ alias }) => alias);
  const texts = [...atlas.entries.read('dm:entity_mom', { kind: 'message' })].flatMap(({ payload }) =>
    isObject(payload) && payload.role === 'user' ? textsIn(payload.content) : [],
  );
  const wrong = channels.flatMap((channel) => {
    const got = texts.filter((text) => text.startsWith(`${channel} `));
    const sent = Array.from({ length: messages }, (_, i) => `${channel} ${i}`);
    return got.join() === sent.join() ? [] : [`${channel}: ${got.length} of ${messages}: ${got.join()}`];
  });
  return [
    ...(sessions.length === 1 ? [] : [`the sessions are ${sessions.join()}`]),
    ...(aliases.join() === 'dm:entity_mom' ? [] : [`the aliases are ${aliases.join()}`]),
    ...wrong,
    ...[...store.verify()].map(({ message }) => message),
  ];
}

function textsIn(content: unknown): readonly string[] {
  return Array.isArray(content)
    ? content.flatMap((part: unknown) => (isObject(part) && typeof part.text === 'string' ? [part.text] : []))
    : [];
}
