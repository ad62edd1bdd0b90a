import { shellWord } from '../escape.ts';

/** A hint at the next command, for an error of a home on a server: `reason` says why the server cannot be used. */
export function serverHint(code: string, server: string, reason: unknown): string | undefined {
  const home = `--home ${shellWord(server)}`;
  switch (code) {
    case 'TAPE_CANNOT_OPEN':
      return reasonHint(server, reason);
    case 'TAPE_SCHEMA_OLDER':
      return reason === 'privilege'
        ? `have the owner of the schema upgrade it with: tape init ${home}`
        : `upgrade it with: tape init ${home}`;
    case 'TAPE_IO':
      return reason === 'lost' ? `the server may have done it: look with: tape sessions ${home}` : undefined;
    case 'TAPE_LOCKED':
      return 'try again: other processes change what this needs';
    case 'TAPE_CORRUPT':
      return `find the damage with: tape check ${home}; or restore a dump of the schema with pg_restore`;
    default:
      return undefined;
  }
}

function reasonHint(server: string, reason: unknown): string | undefined {
  const other = 'or name another with --home or TAPE_HOME';
  const { hostname, port: named, pathname, searchParams } = new URL(server);
  const [host, port] = [searchParams.get('host') ?? hostname, searchParams.get('port') ?? named];
  const at = [
    ...(host === '' ? [] : [`-h ${shellWord(host)}`]),
    ...(port === '' ? [] : [`-p ${shellWord(port)}`]),
  ];
  switch (reason) {
    case 'password':
      return 'name them in PGUSER and PGPASSWORD, or in ~/.pgpass, which counts when only you may read it (chmod 600)';
    case 'database':
      return `make it with: ${['createdb', ...at, shellWord(pathname.slice(1))].join(' ')}; ${other}`;
    case 'unreachable':
      return `ask whether it takes connections with: ${['pg_isready', ...at].join(' ')}; ${other}`;
    case 'tls':
      return 'sslmode and sslrootcert of the address say which server is trusted: see docs/server.md';
    case 'privilege':
      return 'its owner gives it with GRANT: to make a home, CREATE on the database; to use one, its schema and tables';
    case 'pooler':
      return 'name the server itself, or let the pooler use its mode session';
    case 'read-only':
      return 'name the server that it follows';
    default:
      return undefined;
  }
}
