import type { Meta } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';
import { type Fields, optionFault } from '@tapedeck/tape/store';
import { SessionError } from '../errors.ts';

/** Who sent a delivery, as the program knows. */
export interface Principal {
  /** `known`: the program knows the entity behind the sender. Default: as `entity_id` says. */
  readonly type?: 'known' | 'unknown';
  /** The entity, such as `entity_mom`. */
  readonly entity_id?: string;
}

/** A message that came in from a channel, without its text. */
export interface IncomingDelivery {
  /** Default: an unknown sender. */
  readonly principal?: Principal;
  readonly delivery: {
    /** The channel that it came through, such as `imessage`. */
    readonly channel: string;
    /** Where it was said: to the agent alone, in a group, in a thread of one, or by no person. */
    readonly peer_kind: PeerKind;
    readonly sender_id?: string;
    /** The group. */
    readonly peer_id?: string;
    readonly thread_id?: string;
    /** Name of the sender, for the model. */
    readonly sender_name?: string;
    /** Id of the message in its channel. */
    readonly message_id?: string;
  };
}

export type PeerKind = (typeof peerKinds)[number];
export const peerKinds = ['dm', 'group', 'thread', 'system'] as const;

/** What routes compare and templates name. */
export const deliveryFields = [
  'principal.type',
  'principal.entity_id',
  'delivery.channel',
  'delivery.peer_kind',
  'delivery.sender_id',
  'delivery.peer_id',
  'delivery.thread_id',
] as const;
export type DeliveryField = (typeof deliveryFields)[number];

const outside: Fields<IncomingDelivery> = { principal: 'object', delivery: 'object' };
const ofPrincipal: Fields<Principal> = { type: ['known', 'unknown'], entity_id: 'text' };
const ofDelivery: Fields<IncomingDelivery['delivery']> = {
  channel: 'text',
  peer_kind: peerKinds,
  sender_id: 'text',
  peer_id: 'text',
  thread_id: 'text',
  sender_name: 'text',
  message_id: 'text',
};

/**
 * Checks a delivery, and completes what it says of the sender. The fields of `delivery` may also stand beside `principal`.
 * @throws SESSION_BAD_INPUT; `data.field` names the field
 */
export function parseDelivery(value: unknown): IncomingDelivery {
  if (!isObject(value)) throw refuse('', 'it must be an object of principal and delivery');
  const { principal = {}, ...rest } = value;
  const isNested = Object.hasOwn(value, 'delivery');
  if (isNested) assertKnown('', value, outside);
  const { delivery = rest } = isNested ? value : {};
  if (!isObject(principal)) throw refuse('principal', 'must be an object');
  if (!isObject(delivery)) throw refuse('delivery', 'must be an object');
  assertKnown('principal', principal, ofPrincipal);
  assertKnown('delivery', delivery, ofDelivery);
  for (const field of ['channel', 'peer_kind'])
    if (delivery[field] === undefined) throw refuse(`delivery.${field}`, 'is missing');
  const given = principal as Principal;
  const type = given.type ?? (given.entity_id === undefined ? 'unknown' : 'known');
  if ((type === 'known') !== (given.entity_id !== undefined))
    throw refuse(
      'principal.entity_id',
      type === 'known' ? 'is missing: the sender is known' : 'names an entity: the sender is not unknown',
    );
  return {
    principal: { ...given, type },
    delivery: delivery as IncomingDelivery['delivery'],
  };
}

function assertKnown(place: string, value: object, fields: Parameters<typeof optionFault>[1]): void {
  const fault = optionFault(value, fields);
  const at = (field: string) => (place === '' ? field : `${place}.${field}`);
  if (fault !== undefined) {
    const { field = '', near } = fault;
    const hint = near.length === 0 ? '' : ` (did you mean ${near.map(at).join(' or ')}?)`;
    const why = Object.hasOwn(fields, field) ? fault.why.slice(field.length + 1) : `is no field${hint}`;
    throw refuse(at(field), why);
  }
  for (const [field, one] of Object.entries(value)) if (one === '') throw refuse(at(field), 'is empty');
}

function refuse(field: string, why: string): SessionError {
  return new SessionError(
    'SESSION_BAD_INPUT',
    `cannot route a delivery: ${field === '' ? '' : `${field} `}${why}`,
    { data: { field } },
  );
}

/** The value of a field; undefined where the delivery has none. */
export function valueAt({ principal = {}, delivery }: IncomingDelivery, field: string): string | undefined {
  const [group, name = ''] = field.split('.');
  const of: object = group === 'principal' ? principal : delivery;
  const value: unknown = Object.hasOwn(of, name) ? Reflect.get(of, name) : undefined;
  return typeof value === 'string' ? value : undefined;
}

/** Who wrote a message, and where, as the standard fields of its meta. */
export function authorMeta({ delivery }: IncomingDelivery): Meta {
  const { channel, sender_id: sender, sender_name, message_id } = delivery;
  return {
    channel,
    ...(sender !== undefined && { sender }),
    ...(sender_name !== undefined && { sender_name }),
    ...(message_id !== undefined && { message_id }),
  };
}
