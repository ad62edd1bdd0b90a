import { AsyncLocalStorage } from 'node:async_hooks';
import type { Warning } from 'ai';
import type { SessionEvent } from '../stream/events.ts';

type Logger = Exclude<typeof globalThis.AI_SDK_LOG_WARNINGS, undefined | false>;
type Log = Parameters<Logger>[0];

/** The logger of the calls of this context. */
const logging = new AsyncLocalStorage<Logger>();
let isInstalled = false;

/**
 * Runs a call of the AI SDK; its warnings go to `onWarning` as one line each. The SDK prints warnings on stderr, and
 * has one logger for the whole process. Only calls of `act` see this one; for all others it is that of the program.
 */
export async function hearingWarnings<T>(
  onWarning: (message: string) => void,
  act: () => Promise<T>,
): Promise<T> {
  if (!isInstalled) install();
  return await logging.run((log) => {
    for (const warning of log.warnings) onWarning(warningText(warning, log));
  }, act);
}

function install(): void {
  isInstalled = true;
  let own = globalThis.AI_SDK_LOG_WARNINGS;
  Object.defineProperty(globalThis, 'AI_SDK_LOG_WARNINGS', {
    configurable: true,
    enumerable: true,
    get: () => logging.getStore() ?? own,
    set: (value: typeof own) => {
      own = value;
    },
  });
}

/** A warning of the SDK as a line. Pure. */
function warningText(warning: Warning, { provider, model }: Pick<Log, 'provider' | 'model'>): string {
  const text = textOf(warning).replace(/\s+/g, ' ').trim();
  return provider === undefined || model === undefined ? text : `${provider}/${model}: ${text}`;
}

function textOf(warning: Warning): string {
  switch (warning.type) {
    case 'unsupported':
      return detailed(warning.feature, 'is not supported', warning.details);
    case 'compatibility':
      return detailed(warning.feature, 'is used in a compatibility mode', warning.details);
    case 'deprecated':
      return detailed(warning.setting, 'is deprecated', warning.message);
    case 'other':
      return warning.message;
    default:
      return JSON.stringify(warning);
  }
}

/** Details that name what they are about say it all. */
function detailed(what: string, is: string, details = ''): string {
  if (details.includes(what)) return details;
  return `${what} ${is}${details === '' ? '' : `: ${details}`}`;
}

/** What knows the warnings that were given already. */
export interface Warned {
  readonly warned: Set<string>;
  readonly emitEvent: (event: SessionEvent) => void;
}

/** Publishes a warning, unless it was published before. */
export function warnOnce({ warned, emitEvent }: Warned, message: string): void {
  if (warned.has(message)) return;
  warned.add(message);
  emitEvent({ type: 'warning', message });
}
