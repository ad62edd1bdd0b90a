import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from '../support/imports.ts';

/** The names, values and types, that a file exports in lists. */
function exportsOf(file: string): string[] {
  const text = readFileSync(join(root, 'packages/tape/src', file), 'utf8');
  return [...text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(([, names = '']) =>
    names
      .split(',')
      .map((name) => name.trim().replace(/^type /, ''))
      .filter((name) => name !== ''),
  );
}

const names = (text: string) => text.trim().split(/\s+/);
/** The imports of programs. A name here is a promise: adding one is a decision, removing one breaks programs. */
const forPrograms = names(`
  anchor Appended assistant compaction Copied CopyOptions copyTapes Draft Elsewhere Entry EntryKind Forked ForkRequest handoff HomeStore Inherit Json JsonObject
  Lease Lifecycle Merged MergeRequest Meta note openTapeStore parsePolicy Part Point processOwner prune
  Redact RedactOptions Ref remakeOf result Rewound Secret Seq SessionInfo sessionName SqliteTapeStore StoredMessage StoreOptions streamView
  TapeError TapeErrorCode TapeStore Target Task toolCall toolResult user view View ViewOptions ViewPolicy
`);

/** The further imports of the author of another store. */
const forStores = names(`
  AdoptOptions Adopted AdoptedSession AdoptProgress BackupOptions BackupProgress BundleOptions BundlePart BundleScope BundleSource BundleWritten Bundles
  Alias AppendOptions Artifact assertDraft assertOptions Awaitable Beside blobBytesMax blobHashes BlobRef
  bodyHash ByteRange CallsQuery ChainLink childName ChildNaming Collected Condition Conflict ConflictReport Deliver Delivery derivedNameMax
  DiscardedImports DiscardOptions DoneWork DrainOptions encodeJson encodeLine Entries entryBytesMax entryHash EntryQuery ErasureOptions FamilyLine fenced Fields
  fieldsOf firstLinePrev ForkPreview genesisHash GraphReceipt hashLine History Hit Imports Inbox InboxBody InboxDraft
  InboxItem Intention isBlobRef isTextRef isUlid isWorkerName Journal jsonDepthMax kindFault KnownFields LeaseOptions LeftOut Leases leaseTtlMs
  Lineage LineageLine LineageQuery LineageType LineIntention Live LiveQuery LiveRun LiveStream Mark
  MergeDraft MergePreview MergeStrategy ModelCalls nameFault nameKey nameMax nearNames NewestQuery normalise OnProgress OptionFault optionFault Owner parseAnchorName
  parseName PatchFile Posted PreviewEntry Problem Progress ProgressOptions provablyDead Purged PurgePreview RangeQuery RecordedArtifact RedactPreview Redacted
  ReleaseOptions restoreBlobs RewindOptions RunItem SearchQuery SearchResult Sequence SessionChange SessionInit
  SessionCounts SessionHead SessionLink SessionOwner SessionOrder SessionQuery SessionRange Sessions sha256 StageInit StoreCall StreamChunk HandledItem
  Identities Identity Linked LinkOptions LinkReceipt LinkRequest Resolved ResolveOptions
  tapeName taskSlug TextRef Touch touchesOf Unfinished UnfinishedImport UnfinishedQuery UnrewindOptions ViewQuery Views
  WorktreeRequest wrapStore WriteOptions
`);

test('@tapedeck/tape exports the API of programs, and nothing more', () => {
  expect(exportsOf('index.ts').sort()).toEqual(forPrograms.toSorted());
});

test('@tapedeck/tape/store exports the API of store authors, and nothing more', () => {
  expect(exportsOf('store/index.ts').sort()).toEqual(forStores.toSorted());
});

test('a name belongs to one tier', () => {
  const all = ['index.ts', 'store/index.ts', 'internal.ts'].flatMap(exportsOf);
  expect(all.length).toBeGreaterThan(forPrograms.length + forStores.length);
  expect(all.filter((name, i) => all.indexOf(name) !== i)).toEqual([]);
});

test('the package has three tiers, the contract, and modules loaded alone', () => {
  const { exports } = JSON.parse(readFileSync(join(root, 'packages/tape/package.json'), 'utf8'));
  expect(Object.keys(exports)).toEqual([
    '.',
    './store',
    './store/conformance',
    './postgres',
    './remotes',
    './internal',
    './crash-point',
    './errors',
    './package.json',
  ]);
});
