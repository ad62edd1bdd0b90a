import { sha256 } from '@tapedeck/tape/store';

/** A stand-in for a signature of reasoning: it shows whether the reasoning was changed. */
export function signatureOf(thoughts: string): string {
  return `sig:${sha256(thoughts)}`;
}

/** A stand-in for reasoning, or findings, that only their provider can read. */
export function sealed(text: string): string {
  return `sealed:${sha256(text)}:${sha256(sha256(text)).slice(0, 8)}`;
}

/** Whether `sealed` made it. */
export function isSealed(data: unknown): boolean {
  const [, inner, check] = /^sealed:([0-9a-f]{64}):([0-9a-f]{8})$/.exec(String(data)) ?? [];
  return inner !== undefined && sha256(inner).startsWith(String(check));
}

/** An id that a provider gave, and knows again: `msg_…`, `rs_…`. */
export function issued(prefix: string, seed: string): string {
  const id = sha256(seed).slice(0, 16);
  return `${prefix}_${id}${sha256(prefix + id).slice(0, 8)}`;
}

/** Whether `issued` gave it. */
export function wasIssued(id: unknown): boolean {
  const [, prefix, inner, check] = /^([a-z]+)_([0-9a-f]{16})([0-9a-f]{8})$/.exec(String(id)) ?? [];
  return prefix !== undefined && inner !== undefined && sha256(prefix + inner).startsWith(String(check));
}
