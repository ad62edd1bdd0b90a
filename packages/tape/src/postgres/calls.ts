import { isObject } from '../entry/json.ts';
import type { Value } from './pipeline.ts';

/** What a call of a method is, for those that learn from others of its kind. */
export interface Call {
  readonly kind: string;
  /** The session that it is about, as the call names it. */
  readonly about?: string;
  readonly given: readonly Value[];
}

export function callOf(method: string, args: readonly unknown[]): Call {
  return { kind: kindOf(method, args), ...aboutIn(args[0]), given: givenIn(args) };
}

/** The kind of a call: its method, and which options it has, with those that have the same value. */
function kindOf(method: string, args: readonly unknown[]): string {
  const shapes = args.map((arg) => {
    if (!isObject(arg)) return '';
    const values = Object.values(arg);
    return Object.keys(arg).map((name, i) => `${name}:${values.indexOf(values[i] as never)}`);
  });
  return [method, ...shapes].join(' ');
}

/** The values that a call was given, the session first. */
function givenIn(args: readonly unknown[]): readonly Value[] {
  return args
    .flatMap((arg) => (isObject(arg) ? Object.values(arg) : [arg]))
    .flatMap((value) => (typeof value === 'string' || typeof value === 'number' ? String(value) : []));
}

/** Whether a call writes a session as its owner: it takes the lease or names it. */
export function isOfOwner(method: string, args: readonly unknown[]): boolean {
  return (
    method === 'leases.acquire' ||
    args.some((arg) => isObject(arg) && ('epoch' in arg || (isObject(arg.lease) && 'epoch' in arg.lease)))
  );
}

/** The session that a call is about: its first argument, or that of the lease that this is. */
function aboutIn(first: unknown): { readonly about?: string } {
  const about = typeof first === 'string' ? first : (first as { id?: unknown } | undefined)?.id;
  return typeof about === 'string' ? { about } : {};
}
