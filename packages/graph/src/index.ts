/**
 * The graph of sessions, as `session_graph.jsonl` has it: reads, queries, checks and draws it. A graph file
 * can be read without SQLite.
 *
 * @privateRemarks
 * `record.ts`, `lines.ts` and `chain.ts` are the format of a line, `seek.ts` finds some of them, `journal.ts` writes lines, `check.ts`
 * finds damage, `fold.ts` makes sessions of them, `graph.ts` answers queries, `forest.ts` and
 * `layout.ts` arrange them in rows, and the `draw-…` files and `notations.ts` make pictures. The package imports only `@tapedeck/tape`, of which it takes types and the
 * base class of errors.
 *
 * @module @tapedeck/graph
 */
export { firstPrev, lineHash } from './chain.ts';
export { checkJournal, type JournalProblem, type JournalReport, type ProblemCode } from './check.ts';
export { comparing, FileComparison, type Standing } from './compare.ts';
export { type DrawOptions, drawGraph, drawRow } from './draw-lanes.ts';
export { type ImageOptions, type SvgOptions, svgLines, toSvg } from './draw-svg.ts';
export { drawTree, type TreeGraph, type TreeOptions } from './draw-tree.ts';
export type { LineOptions } from './drawn-line.ts';
export { GraphError, type GraphErrorCode } from './errors.ts';
export { type Folded, fold } from './fold.ts';
export type { PictureMark } from './forest.ts';
export {
  type ListFilter,
  openSessionGraph,
  SessionGraph,
  type SessionMetadata,
  type SessionRef,
} from './graph.ts';
export { FileJournal, openJournal } from './journal.ts';
export { type LayoutOptions, layOut, type PictureRow } from './layout.ts';
export type { LineageStep } from './lineage.ts';
export { type Line, lineBytesMax, readLines } from './lines.ts';
export type { LinkRecord, MergeRecord, SessionNode } from './node.ts';
export { dotLines, mermaidLines, toDot, toMermaid } from './notations.ts';
export { lineageLine, type Parsed, parseRecord, type SkipReason } from './record.ts';
export { findRecords } from './seek.ts';
export type { Skips } from './source.ts';
export type { Tail } from './tail.ts';
