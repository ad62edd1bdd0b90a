import type { Meta, SessionInfo, TapeStore } from '@tapedeck/tape';
import { quote } from '@tapedeck/tape/internal';
import { type Identity, type Linked, nearNames, type Resolved, type SessionInit } from '@tapedeck/tape/store';
import type { DeckConfig } from '../config/config.ts';
import { SessionError } from '../errors.ts';
import { assertFields } from '../fields.ts';
import { authorMeta, type IncomingDelivery, parseDelivery } from '../identity/delivery.ts';
import { parseSessionKey } from '../identity/key.ts';
import { personaOfKey, routeOf } from '../identity/route.ts';
import type { Session } from '../session/session.ts';
import { keptSettings } from './kept-settings.ts';

/** Whose sessions are meant. */
export interface PersonaOptions {
  /**
   * A name in `personas`. Default: the one of the routes that make such keys, else the deck itself, in its own realm; `list`
   * lists all personas.
   */
  readonly persona?: string | undefined;
}

/** How a key is resolved. */
export interface ResolveKeyOptions extends PersonaOptions {
  /** The key of the same sender without an identity: its session is promoted. */
  readonly address?: string | undefined;
}

/** The session of a key. */
export interface ResolvedSession {
  readonly session: Session;
  readonly key: string;
  readonly persona?: string;
  /**
   * `direct`: its name is the key; `alias`: it stands for the key; `promoted`: it was that of the address, and stands for
   * the key from now on; `created`: it is new.
   */
  readonly how: Resolved['how'];
}

/** The session of a delivery. */
export interface Routed extends ResolvedSession {
  /** The name of the route that matched. */
  readonly route: string;
  /** Who wrote it, and where, for `session.send(text, { meta })`. */
  readonly meta: Meta;
}

/** Where a delivery would go. */
export interface RoutePreview {
  /** Of a delivery: the name of the route that matches. */
  readonly route?: string;
  readonly key: string;
  readonly persona?: string;
  readonly how: Resolved['how'];
  /** Absent where one would be created. */
  readonly session?: SessionInfo;
}

/**
 * Keys and their sessions, `deck.identities`. A key is a text such as `dm:entity_mom`; see `sessionKey`.
 *
 * @example
 * ```ts
 * import { openDeck } from '@tapedeck/runtime';
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * await using deck = await openDeck({ store: openTapeStore(':memory:'), model: 'script:answers.json' });
 * const { session } = await deck.identities.resolve('dm:imessage:+1555');
 * await session.run('Hello');
 * await deck.identities.link('dm:entity_mom', ['dm:imessage:+1555', 'dm:gmail:mom@gmail.com']);
 * const { how } = await deck.identities.resolve('dm:gmail:mom@gmail.com');
 * console.log(how); // alias
 * ```
 */
export interface DeckIdentities {
  /**
   * Returns the session of a key, and creates it if nothing stands for the key.
   * @throws SESSION_BAD_INPUT for what is no key, and for a persona that does not exist; TAPE_ARCHIVED; TAPE_NO_SESSION
   */
  resolve(key: string, options?: ResolveKeyOptions): Promise<ResolvedSession>;
  /** Returns where a key or a delivery would go. Writes nothing. */
  preview(of: string | IncomingDelivery, options?: ResolveKeyOptions): Promise<RoutePreview>;
  /**
   * Joins addresses with the key of an entity: the session with the most turns gets their messages from now on. The others
   * stay as they are, and are searched with it.
   * @throws SESSION_BAD_INPUT; TAPE_CONFLICT for an address that is linked with another key; TAPE_BAD_OPTION; TAPE_ARCHIVED
   */
  link(key: string, addresses: readonly string[], options?: PersonaOptions): Promise<Linked>;
  /**
   * Separates addresses from the key of an entity; without any, all of them.
   * @throws SESSION_BAD_INPUT; TAPE_NO_SESSION; TAPE_CONFLICT
   */
  unlink(key: string, addresses?: readonly string[], options?: PersonaOptions): Promise<Linked>;
  /** Lists which sessions stand for which keys. */
  list(options?: PersonaOptions): Promise<readonly Identity[]>;
}

/** What routing needs of a deck. */
interface Parts {
  readonly store: TapeStore;
  readonly config: DeckConfig;
  /** Makes a handle of a session, in the realm that it is of. */
  readonly sessionOf: (info: SessionInfo) => Promise<Session>;
}

const personaFields = { persona: 'text' } as const;
const resolveFields = { ...personaFields, address: 'text' } as const;

/** Makes `deck.identities`. */
export function deckIdentities(parts: Parts): DeckIdentities {
  const { store, config } = parts;
  return {
    resolve: async (key, options = {}) => {
      assertFields(options, resolveFields, 'resolve a key');
      return await resolved(parts, meant(parts, key, options));
    },
    preview: async (of, options = {}) => {
      assertFields(options, resolveFields, 'resolve a key');
      const routed = typeof of === 'string' ? undefined : routeOf(config.routes ?? [], parseDelivery(of));
      const target = routed ?? meant(parts, String(of), options);
      assertKeys([target.key, ...(target.address === undefined ? [] : [target.address])]);
      const { key, persona, address } = target;
      const found = await ofPersona(parts, persona).store.identities.find(key, { address });
      return {
        ...(routed !== undefined && { route: routed.route }),
        key,
        ...(persona !== undefined && { persona }),
        how: found?.how ?? 'created',
        ...(found !== undefined && { session: found.session }),
      };
    },
    link: async (key, addresses, options = {}) => {
      assertFields(options, personaFields, 'link keys');
      assertPeople('link', [key, ...listed(addresses)]);
      const { store: own, init } = ofPersona(parts, meant(parts, key, options).persona);
      return await own.identities.link(key, addresses, { init });
    },
    unlink: async (key, addresses = [], options = {}) => {
      assertFields(options, personaFields, 'unlink keys');
      assertPeople('unlink', [key, ...listed(addresses)]);
      return await ofPersona(parts, meant(parts, key, options).persona).store.identities.unlink(
        key,
        addresses,
      );
    },
    list: async (options = {}) => {
      assertFields(options, personaFields, 'list identities');
      const { persona } = options;
      if (persona !== undefined) return await ofPersona(parts, persona).store.identities.list();
      const realms = new Set([store.base, ...Object.keys(config.personas ?? {})]);
      const lists = await Promise.all(
        [...realms].map(async (realm) => store.inRealm(realm).identities.list()),
      );
      return lists.flat();
    },
  };
}

/** A key, and whose it is. */
function meant(
  { config }: Parts,
  key: string,
  { persona = personaOfKey(config.routes ?? [], key), ...options }: ResolveKeyOptions,
): ResolveKeyOptions & { readonly key: string } {
  return { ...options, persona, key };
}

/** Routes a delivery: `deck.route`. */
export async function routeDelivery(parts: Parts, value: IncomingDelivery): Promise<Routed> {
  const delivery = parseDelivery(value);
  const { route, ...target } = routeOf(parts.config.routes ?? [], delivery);
  return { ...(await resolved(parts, target)), route, meta: authorMeta(delivery) };
}

async function resolved(
  parts: Parts,
  { key, persona, address }: ResolveKeyOptions & { readonly key: string },
): Promise<ResolvedSession> {
  assertKeys([key, ...(address === undefined ? [] : [address])]);
  const { store, init } = ofPersona(parts, persona);
  const { session, how } = await store.identities.resolve(key, { address, init });
  return { session: await parts.sessionOf(session), key, ...(persona !== undefined && { persona }), how };
}

/** The store of the realm of a persona, and what its new sessions keep. */
function ofPersona(
  { store, config: { personas = {} } }: Parts,
  persona: string | undefined,
): { readonly store: TapeStore; readonly init: SessionInit } {
  if (persona === undefined) return { store, init: {} };
  const of = Object.hasOwn(personas, persona) ? personas[persona] : undefined;
  if (of === undefined) {
    const near = nearNames(persona, Object.keys(personas));
    const hint = near.length === 0 ? '' : `; did you mean ${near.map(quote).join(' or ')}?`;
    throw new SessionError(
      'SESSION_BAD_INPUT',
      `cannot find persona ${quote(persona)}: the configuration has no persona of that name${hint}`,
      { data: { persona, near } },
    );
  }
  const { instructions, model, settings: call, tools, uses, permissions: rules } = of;
  const settings = keptSettings(`use persona '${persona}'`, {
    ...{ instructions, model, tools, uses, rules },
    settings: call,
    record: undefined,
  });
  return { store: store.inRealm(persona), init: settings === undefined ? {} : { settings } };
}

function assertKeys(keys: readonly string[]): void {
  for (const key of keys) parseSessionKey(key);
}

/** Refuses keys of what is no person, of which no two are one. */
function assertPeople(act: string, keys: readonly string[]): void {
  for (const key of keys)
    if (parseSessionKey(key).kind !== 'dm')
      throw new SessionError(
        'SESSION_BAD_INPUT',
        `cannot ${act} ${quote(key)}: only dm: keys are of a person`,
        {
          data: { key },
        },
      );
}

/** Plain JavaScript can pass anything. */
function listed(addresses: unknown): readonly string[] {
  if (Array.isArray(addresses)) return addresses;
  throw new SessionError('SESSION_BAD_INPUT', 'cannot link keys: addresses must be a list of keys', {
    data: {},
  });
}
