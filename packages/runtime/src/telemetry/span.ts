/**
 * Spans of OpenTelemetry, by the semantic conventions for generative AI. Without a tracer provider nothing happens here:
 * the API is loaded when a program has registered one. `span.ts` opens a span below the one of the running code, `runs.ts`
 * remembers the spans of runs, of calls and of merges, to which others are linked, `steps.ts` has those of steps, and `chat.ts` describes a model call. No
 * span has contents of messages, arguments or results, and no fault of a tracer reaches a run. Imports `usage`.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Attributes, Context, ContextManager, SpanContext } from '@opentelemetry/api';

/** A span that is open. */
export interface OpenSpan {
  readonly context: SpanContext;
  /** The place below it, for what belongs to it. */
  readonly scope: Scope;
  set(attributes: Attributes): void;
  /** Marks what it is about as failed. The message of an error can quote a conversation, so only its type is recorded. */
  fail(error: unknown): void;
  /** Does an act of which the spans are below this one. */
  within<T>(act: () => Promise<T>): Promise<T>;
  end(): void;
}

/** A place in a trace, and the ULID of the session to which it belongs. */
export interface Scope {
  readonly context: Context;
  readonly session?: string | undefined;
}

/** What a span is about. */
export interface SpanRequest {
  readonly name: string;
  readonly isClient?: boolean;
  readonly attributes?: Attributes;
  readonly links?: readonly SpanContext[];
  /** The session: that of the span above, where none is given. */
  readonly session?: string;
  /** What it is below (default: what the running code is in). Null: nothing. */
  readonly parent?: Scope | null;
}

/** What every program of OpenTelemetry has in common, under a name that its API has fixed. */
interface Registry {
  readonly trace?: unknown;
  readonly context?: ContextManager;
}

const registryName = Symbol.for('opentelemetry.js.api.1');
const registry = () => (globalThis as { readonly [registryName]?: Registry })[registryName];

/** Whether the program has registered a tracer provider. */
export function isTraced(): boolean {
  return registry()?.trace !== undefined;
}

const scopes = new AsyncLocalStorage<Scope>();

/** What the running code is in: a span of ours, or one of the program. */
export function scopeHere(): Scope | undefined {
  const own = scopes.getStore();
  // The program's own context is as deep, or deeper: it has ours, where it has a manager.
  const context = registry()?.context?.active() ?? own?.context;
  return context === undefined ? undefined : { context, session: own?.session };
}

/** The span of the running code, for another process; undefined without one. */
export async function spanHere(): Promise<SpanContext | undefined> {
  const scope = isTraced() ? scopeHere() : undefined;
  if (scope === undefined) return undefined;
  const api = await import('@opentelemetry/api');
  return api.trace.getSpanContext(scope.context);
}

/** Does an act below a span of another process, if the program is traced. */
export async function below<T>(remote: SpanContext | undefined, act: () => Promise<T>): Promise<T> {
  if (remote === undefined || !isTraced()) return await act();
  const api = await import('@opentelemetry/api');
  const scope = { context: api.trace.setSpanContext(api.ROOT_CONTEXT, remote) };
  return await scopes.run(scope, async () => await api.context.with(scope.context, act));
}

/** Does an act within a span, if the program is traced. An error that it throws marks the span. */
export async function traced<T>(
  request: () => SpanRequest,
  act: (span: OpenSpan | undefined) => Promise<T>,
): Promise<T> {
  const span = isTraced() ? await openSpan(request()) : undefined;
  if (span === undefined) return await act(undefined);
  try {
    return await span.within(() => act(span));
  } catch (error) {
    span.fail(error);
    throw error;
  } finally {
    span.end();
  }
}

/** Opens a span, for what ends elsewhere than it began. Undefined where the program is not traced. */
export async function openSpan(request: SpanRequest): Promise<OpenSpan | undefined> {
  if (!isTraced()) return undefined;
  try {
    const api = await import('@opentelemetry/api');
    const parent = request.parent === undefined ? scopeHere() : request.parent;
    const session = request.session ?? parent?.session;
    const above = parent?.context ?? api.ROOT_CONTEXT;
    const span = api.trace.getTracer('@tapedeck/runtime').startSpan(
      request.name,
      {
        kind: request.isClient === true ? api.SpanKind.CLIENT : api.SpanKind.INTERNAL,
        attributes: {
          ...request.attributes,
          ...(session !== undefined && { 'gen_ai.conversation.id': session }),
        },
        links: (request.links ?? []).map((context) => ({ context })),
      },
      above,
    );
    const scope = { context: api.trace.setSpan(above, span), session };
    return {
      context: span.spanContext(),
      scope,
      set: (attributes) => quietly(() => span.setAttributes(attributes)),
      fail: (error) =>
        quietly(() => {
          span.setAttribute('error.type', errorType(error));
          span.setStatus({ code: api.SpanStatusCode.ERROR });
        }),
      within: async (act) => await scopes.run(scope, async () => await api.context.with(scope.context, act)),
      end: () => quietly(() => span.end()),
    };
  } catch {
    return undefined;
  }
}

function quietly(act: () => unknown): void {
  try {
    act();
  } catch {
    // The program's own tracer is broken, and the run is not.
  }
}

/** The type of an error: its code, the status of a provider's answer, or the name of its class. */
function errorType(error: unknown): string {
  if (typeof error === 'string') return error;
  const { code, cause, statusCode, name } = (error ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof statusCode === 'number') return String(statusCode);
  if (typeof code === 'string' && code !== '') return code;
  if (cause !== undefined && cause !== error) return errorType(cause);
  return typeof name === 'string' && name !== '' ? name : '_OTHER';
}
