import { baseFault } from '@tapedeck/tape/internal';
import type { CallSettings } from '../model/call-settings.ts';
import type { RuleTexts } from '../permissions/rule.ts';

/**
 * Someone whom a home answers as. The name of a persona is a realm of session names: two personas have sessions of the same
 * keys beside each other. A session keeps what its persona was when it was created.
 */
export interface Persona {
  /** Default: those of the deck. */
  readonly instructions?: string;
  /** Until a run names another. Default: that of the deck. */
  readonly model?: string;
  readonly settings?: CallSettings;
  /** Names of the tools that its sessions and those below them may call. Default: all of the deck. */
  readonly tools?: readonly string[];
  /** Names of those that its own model may call. Default: all of these. */
  readonly uses?: readonly string[];
  /** Rules for its calls and those of the sessions below it, after those of the deck. */
  readonly permissions?: RuleTexts;
}

/** Personas by their names. */
export type Personas = Readonly<Record<string, Persona>>;

/** Why a text cannot be the name of a persona; undefined for one that can. */
export function personaNameFault(name: string): string | undefined {
  return baseFault(name) ?? (name === '__proto__' ? 'every object has it' : undefined);
}
