import { openTapeStore } from '@tapedeck/tape';
import { entryLines } from './scripted.ts';
export function dump(home: any, faults: any) {
  if (!faults.some((f: string) => f.includes(home.scene + ':'))) return;
  using store = openTapeStore(home.db, { readonly: true });
  console.log('#####', home.scene);
  for (const s of [...store.sessions({ all: true })].reverse()) {
    console.log('--', s.name, s.task, s.delivery, s.deliver, s.spawnCall, s.head, s.settled);
    const es = [...store.read(s.name, { own: true })];
    console.log(
      entryLines(es)
        .map(
          (l, i) =>
            `   ${es[i].seq} ${es[i].at % 100000} ${String(es[i].meta.run ?? '').slice(-4)} ${es[i].meta.partial ? 'PARTIAL' : ''} ${l.slice(0, 230).replaceAll('\n', '|')}`,
        )
        .join('\n'),
    );
  }
}
