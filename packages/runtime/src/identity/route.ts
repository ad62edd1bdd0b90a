/**
 * Routes: which session a delivery is for. A route is a policy: what it matches, and a template of a session key.
 * `delivery.ts` checks a delivery, `key.ts` has the grammar of keys, `persona.ts` who a home answers as. All of it is
 * pure; `deck/identities.ts` asks the store. Imports `permissions`, `model` and what lies below them.
 */
import { quote } from '@tapedeck/tape/internal';
import { nearNames } from '@tapedeck/tape/store';
import { messageOf, SessionError } from '../errors.ts';
import { type DeliveryField, deliveryFields, type IncomingDelivery, valueAt } from './delivery.ts';
import { escapedPart, parseSessionKey, partFault } from './key.ts';

/** What a route compares: a text, which must be equal; `true`: any text; `false`: the delivery lacks the field. */
export type RouteMatch = string | boolean;

/** A policy: deliveries that match it go to the session of its key. */
export interface Route {
  readonly name: string;
  /** All of it must be so. Default: every delivery matches. */
  readonly match?: {
    readonly principal?: Readonly<Partial<Record<'type' | 'entity_id', RouteMatch>>>;
    readonly delivery?: Readonly<
      Partial<Record<'channel' | 'peer_kind' | 'sender_id' | 'peer_id' | 'thread_id', RouteMatch>>
    >;
  };
  readonly session: {
    /** The template of a key: `dm:{principal.entity_id}`. Values are escaped, so that a `:` in one separates nothing. */
    readonly key: string;
    /** Who answers: a name in `personas`. Default: the deck itself, in its own realm. */
    readonly persona?: string;
  };
}

/** Where a delivery goes. */
export interface RouteTarget {
  /** The name of the route. */
  readonly route: string;
  readonly key: string;
  readonly persona?: string;
  /** The key of the same sender without an identity, if that is another one of the same persona. */
  readonly address?: string;
}

const placeholder = /\{([^{}]*)\}/g;

/** Why a text cannot be a template of keys; undefined for one that can. */
export function templateFault(template: unknown): string | undefined {
  if (typeof template !== 'string') return 'must be a text, such as dm:{principal.entity_id}';
  for (const [, field = ''] of template.matchAll(placeholder))
    if (!isField(field)) {
      const near = nearNames(field, deliveryFields);
      const hint =
        near.length > 0 ? `did you mean ${near.join(' or ')}?` : `there are ${deliveryFields.join(', ')}`;
      return `has {${field}}, which no delivery has (${hint})`;
    }
  try {
    const { kind } = parseSessionKey(template.replace(placeholder, 'x'));
    return kind === 'worker' ? 'names a worker, which a delegation makes' : undefined;
  } catch (error) {
    return `makes no session key: ${messageOf(error)}`;
  }
}

function isField(field: string): field is DeliveryField {
  return deliveryFields.some((one) => one === field);
}

/**
 * The first route that a delivery matches, with its template filled in.
 * @throws SESSION_NO_ROUTE when none matches; SESSION_BAD_INPUT when the template needs a field that the delivery has not
 */
export function routeOf(routes: readonly Route[], delivery: IncomingDelivery): RouteTarget {
  const found = firstMatch(routes, delivery);
  if (found === undefined) {
    const { principal, delivery: of } = delivery;
    const names = routes.map(({ name }) => name);
    throw new SessionError(
      'SESSION_NO_ROUTE',
      `cannot route a delivery of ${quote(of.channel)} (${of.peer_kind}, ${principal?.type} sender): ${
        names.length === 0 ? 'there are no routes' : `no route matches it (${names.join(', ')})`
      }`,
      { data: { routes: names } },
    );
  }
  const filled = fill(found, delivery);
  if ('missing' in filled)
    throw new SessionError(
      'SESSION_BAD_INPUT',
      `cannot route a delivery by ${quote(found.name)}: ${filled.missing} ${filled.why}`,
      { data: { route: found.name, field: filled.missing } },
    );
  const { persona } = found.session;
  const address = addressOf(routes, delivery);
  const isOther = address !== undefined && address.key !== filled.key && address.persona === persona;
  return {
    route: found.name,
    key: filled.key,
    ...(persona !== undefined && { persona }),
    ...(isOther && { address: address.key }),
  };
}

/**
 * The persona of a key where the caller names none: that of the routes that make keys of this form.
 * @throws SESSION_BAD_INPUT when they have several, and for what is no key
 */
export function personaOfKey(routes: readonly Route[], key: string): string | undefined {
  const form = formOf(key);
  const same = routes.filter(({ session }) => formOf(session.key.replace(placeholder, 'x')) === form);
  const [persona, ...others] = new Set(same.map(({ session }) => session.persona));
  if (others.length === 0) return persona;
  const names = [persona, ...others].map((name) => name ?? 'none');
  throw new SessionError(
    'SESSION_BAD_INPUT',
    `cannot tell whose key ${quote(key)} is: routes make such keys for several personas (${names.join(', ')})`,
    { data: { key, personas: names } },
  );
}

/** The kind of a key, and the names of its parts. */
function formOf(key: string): string {
  const parsed = parseSessionKey(key);
  return `${parsed.kind} ${Object.keys(parsed).join(' ')}`;
}

/** Where the sender of a delivery would lead without an identity; undefined for another kind of session. */
function addressOf(
  routes: readonly Route[],
  { principal, delivery }: IncomingDelivery,
): { readonly key: string; readonly persona: string | undefined } | undefined {
  if (principal?.type !== 'known') return undefined;
  const unknown: IncomingDelivery = { principal: { type: 'unknown' }, delivery };
  const found = firstMatch(routes, unknown);
  const filled = found === undefined ? undefined : fill(found, unknown);
  if (found === undefined || filled === undefined || 'missing' in filled) return undefined;
  return filled.key.startsWith('dm:') ? { key: filled.key, persona: found.session.persona } : undefined;
}

function firstMatch(routes: readonly Route[], delivery: IncomingDelivery): Route | undefined {
  return routes.find(({ match = {} }) =>
    Object.entries(match).every(([group, wanted]) =>
      Object.entries(wanted ?? {}).every(([name, value]) => {
        if (value === undefined) return true;
        const has = valueAt(delivery, `${group}.${name}`);
        return typeof value === 'boolean' ? (has !== undefined) === value : has === value;
      }),
    ),
  );
}

function fill(
  { session }: Route,
  delivery: IncomingDelivery,
): { readonly key: string } | { readonly missing: string; readonly why: string } {
  for (const [, field = ''] of session.key.matchAll(placeholder)) {
    const value = valueAt(delivery, field);
    const why = value === undefined ? 'is missing' : partFault(value);
    if (why !== undefined) return { missing: field, why };
  }
  const key = session.key.replace(placeholder, (_, field: string) =>
    escapedPart(valueAt(delivery, field) ?? ''),
  );
  // A key has a longest form.
  parseSessionKey(key);
  return { key };
}
