import type { Entry, Json, JsonObject } from '@tapedeck/tape';
import { encodeJson, sha256 } from '@tapedeck/tape/store';

/** The definitions of the tools that a model is sent, as a tape records them. */
export interface SentTools {
  readonly digest: string;
  /** A list of `{name, description?, schema?}`; undefined when it is too large for a tape, or nested too deep. */
  readonly definitions: Json | undefined;
}

/** The longest list that a tape records, in characters of JSON. */
const charsMax = 1_000_000;

/** What a tape records of definitions; undefined without any. */
export function sentTools(definitions: readonly object[]): SentTools | undefined {
  if (definitions.length === 0) return undefined;
  const text = JSON.stringify(definitions);
  return { digest: sha256(text), definitions: text.length > charsMax ? undefined : storable(text) };
}

/** The list as the meta of an entry can have it. */
function storable(text: string): Json | undefined {
  const definitions = JSON.parse(text) as Json;
  try {
    encodeJson({ tools: definitions });
    return definitions;
  } catch {
    return undefined;
  }
}

/**
 * What the meta of an answer has of the tools beside their digest: their definitions, unless an entry of the view has them.
 * The first answer after a compaction has them again, so that a context is whole without what was before it.
 */
export function toolsMeta(entries: readonly Entry[], sent: SentTools | undefined): JsonObject {
  if (sent?.definitions === undefined) return {};
  const isThere = entries.some(({ meta }) => meta.tools_digest === sent.digest && meta.tools !== undefined);
  return isThere ? {} : { tools: sent.definitions };
}
