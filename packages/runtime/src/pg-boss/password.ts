import { filePassword } from '@tapedeck/tape/internal';

/**
 * The address for connections of the queue: with the password of the user's file, where neither it nor a variable has one.
 * pg-boss makes its connections itself.
 */
export async function withPassword(address: string): Promise<string> {
  const { default: pg } = await import('pg');
  const password = await filePassword(new pg.Client({ connectionString: address }));
  if (password === undefined) return address;
  const url = new URL(address);
  url.searchParams.set('password', password);
  return url.href;
}
