import type { Part } from './settle.ts';

/** An import that something starts, whenever that is: it takes nothing from where it is started. */
export interface Job {
  /** The words of the command, each of them absolute where it is a path. */
  readonly command: readonly string[];
  /** The variables that say where transcripts are, as they are set now. */
  readonly env: Readonly<Record<string, string>>;
}

/** What can start a job each hour. */
export interface Timer {
  readonly name: 'launchd' | 'systemd' | 'cron';
  /** Whether this machine has it. */
  isHere(): boolean;
  /** Whether this command has written something for it. */
  isWritten(): boolean;
  /** The home into which what it has written imports; undefined where that is not known. */
  homeIn(): string | undefined;
  /** The texts that are to change; without a job, those that it wrote lose it. */
  parts(job: Job | undefined): readonly Part[];
  /** Makes what was written count; undefined when it does. */
  start(): NotStarted | undefined;
  /** Ends it, before its texts are removed. */
  stop(): void;
}

/** Why a timer does not run that was written, and the command that starts it. */
export interface NotStarted {
  readonly why: string;
  readonly command: string;
}

/** Runs a program with the user's environment; undefined if no program has that name. */
export type Runs = (program: string, args: readonly string[], input?: string) => Ran | undefined;

/** What a program printed until it ended. */
interface Ran {
  readonly code: number;
  readonly stdout: string;
  /** Whether that is what it printed: false where it was no UTF-8. */
  readonly isText: boolean;
  readonly stderr: string;
}
