import { claudeAgentSdk } from './claude-agent-sdk.ts';
import { jsonl } from './jsonl.ts';
import { langGraph } from './langgraph.ts';
import { mastra } from './mastra.ts';
import { naiveDefault, naiveFull } from './naive-sqlite.ts';
import type { Peer } from './peer.ts';
import { pi } from './pi.ts';
import { tapedeck } from './tapedeck.ts';

/** This store, then those that it is compared with. */
export const peers: readonly [Peer, ...Peer[]] = [
  tapedeck,
  claudeAgentSdk,
  pi,
  mastra,
  langGraph,
  naiveFull,
  naiveDefault,
  jsonl,
];
