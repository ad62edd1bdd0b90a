/**
 * The name of a session. That of a child begins with the name of its parent and may end with a code, which are shown faintly,
 * and are cut first where there is no room.
 */
export function SessionName({
  session,
  parent,
}: {
  readonly session: string;
  readonly parent: string | undefined;
}) {
  const [before, own, behind] = partsOf(session, parent);
  return (
    <span class="session-name" title={session}>
      {before !== '' && <span class="less">{before}</span>}
      <span class="own">{own}</span>
      {behind !== '' && <span class="less">{behind}</span>}
    </span>
  );
}

/** The kind of a session, unless it is a usual one. */
export function Kind({ kind }: { readonly kind: string }) {
  return kind === 'session' || kind === 'subagent' ? null : <span class="chip">{kind}</span>;
}

function partsOf(
  session: string,
  parent: string | undefined,
): readonly [before: string, own: string, behind: string] {
  if (parent === undefined || !session.startsWith(parent)) return ['', session, ''];
  const rest = session.slice(parent.length);
  const [, mark = '', own = '', code = ''] = /^([-./:])(.+?)(-[0-9a-f]{8,})?$/.exec(rest) ?? [];
  return own === '' ? ['', session, ''] : [parent + mark, own, code];
}
