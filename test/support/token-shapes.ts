import { createHash } from 'node:crypto';

/** Characters that depend on a word alone: long enough, and as random as those of a token. */
function random(word: string, length: number, alphabet: string): string {
  let text = '';
  for (let i = 0; text.length < length; i += 1)
    for (const byte of createHash('sha256').update(`${word} ${i}`).digest())
      text += alphabet.charAt(byte % alphabet.length);
  return text.slice(0, length);
}

const digits = '0123456789';
const hex = `${digits}abcdef`;
const upper = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';
const alphanumeric = digits + upper + upper.toLowerCase();
const base64 = `${alphanumeric}+/`;

const word = (length: number, salt = '') => random(`word ${length} ${salt}`, length, alphanumeric);
const base64url = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
const jwt = [base64url({ alg: 'HS256', typ: 'JWT' }), base64url({ sub: '1234567890' }), word(43)].join('.');
const pem = (kind: string, begin: string) =>
  [
    `-----BEGIN ${kind}-----`,
    ...(`${begin}${random(kind, 300, base64)}`.match(/.{1,64}/g) ?? []),
    `-----END ${kind}-----`,
  ].join('\n');

/** A secret of each form, by the name that takes its place. None of them is in use. */
export const tokenShapes: readonly (readonly [name: string, secret: string])[] = [
  [
    '1password',
    `ops_${Buffer.from(JSON.stringify({ email: 'a@b', key: word(121) }))
      .toString('base64')
      .replace(/=*$/, '')}`,
  ],
  ['age', `AGE-SECRET-KEY-1${random('age', 58, `${digits}${upper}`)}`],
  ['anthropic', `sk-ant-api03-${word(93)}AA`],
  ['anthropic', `sk-ant-oat01-${word(95)}`],
  ['aws', `AKIA${random('aws', 16, upper)}`],
  ['cloudflare', `cfut_${word(40)}${random('cf', 8, hex)}`],
  ['databricks', `dapi${random('dapi', 32, hex)}`],
  ['docker', `dckr_pat_${word(27)}`],
  ['figma', `figd_${word(40)}`],
  ['github', `ghp_${word(36)}`],
  ['github', `gho_${word(36)}`],
  ['github', `ghs_123456_${jwt}`],
  ['github', `github_pat_${word(22)}_${word(59)}`],
  ['gitlab', `glpat-${word(20)}`],
  ['google', `AIza${word(35)}`],
  ['google', `GOCSPX-${word(28)}`],
  ['grafana', `glsa_${word(32)}_${random('glsa', 8, hex)}`],
  ['groq', `gsk_${word(52)}`],
  ['hashicorp-vault', `hvs.${word(95)}`],
  ['huggingface', `hf_${random('hf', 34, upper.toLowerCase())}`],
  ['jwt', jwt],
  ['linear', `lin_api_${word(40)}`],
  ['notion', `ntn_${random('ntn', 11, digits)}${word(35)}`],
  ['npm', `npm_${word(36)}`],
  ['openai', `sk-proj-${word(74)}T3BlbkFJ${word(74, 'b')}`],
  ['openai', `sk-${word(20)}T3BlbkFJ${word(20, 'b')}`],
  ['openrouter', `sk-or-v1-${random('or', 64, hex)}`],
  ['privatekey', pem('PRIVATE KEY', 'MI')],
  ['privatekey', pem('RSA PRIVATE KEY', 'MI')],
  ['pypi', `pypi-AgEIcHlwaS5vcmc${word(120)}`],
  ['sendgrid', `SG.${word(22)}.${word(43)}`],
  ['shopify', `shpat_${random('shop', 32, hex)}`],
  ['slack', `xoxb-${random('x', 12, digits)}-${random('y', 13, digits)}-${word(24)}`],
  ['slack', `https://hooks.slack.com/services/T${word(8)}/B${word(10)}/${word(24)}`],
  ['stripe', `sk_live_${word(24)}`],
  ['tailscale', `tskey-auth-${word(16)}-${word(32)}`],
  ['telegram', `${random('tg', 10, digits)}:AA${word(33)}`],
  ['vercel', `vcp_${word(24)}`],
  ['xai', `xai-${word(80)}`],
];

/** Secrets that what stands before them tells, each with it, and the secret itself. */
export const toldSecrets: readonly (readonly [
  name: string,
  text: (secret: string) => string,
  secret: string,
])[] = [
  ['aws', (secret) => `aws_secret_access_key = ${secret}`, random('aws key', 40, base64)],
  ['aws', (secret) => `"SecretAccessKey": "${secret}"`, random('aws key', 40, base64)],
  ['aws', (secret) => `AWS_SECRET_ACCESS_KEY=${secret}`, random('aws key', 40, base64)],
  ['npm', (secret) => `//registry.test/:_authToken=${secret}`, word(36)],
  ['npm', (secret) => `//r.test/:_authToken=${secret}`, `${word(13)}.${word(15)}/${word(16)}+${word(9)}`],
  ['authorization', (secret) => `curl -H 'Authorization: Bearer ${secret}'`, word(32)],
  ['authorization', (secret) => `"authorization": "Basic ${secret}"`, random('basic', 32, base64)],
  [
    'azure',
    (secret) => `DefaultEndpointsProtocol=https;AccountName=a;AccountKey=${secret};`,
    `${random('azure', 86, base64)}==`,
  ],
  ['basicauth', (secret) => secret, 'https://deploy:h4nter22x@registry.corp.io'],
  ['basicauth', (secret) => `https://${secret}@registry.corp.io/x`, `deploy:${word(300)}`],
  ['basicauth', (secret) => `https://${secret}@registry.corp.io`, `${word(300)}:h4nter22x`],
  ['basicauth', (secret) => `postgres://${secret}@db:5432/main`, `app:${word(240)}`],
  ['basicauth', (secret) => `"https://${secret}@registry.corp.io/x"`, 'deploy:h4nt/er22x'],
  ['basicauth', (secret) => `redis://${secret}@cache.corp.io:6379`, 'app:/h4nt/er22x'],
  ['database-connection-string', (secret) => secret, 'postgres://app:h4nter22x@db.corp.io:5432/main'],
];

/** Ordinary texts that look like secrets from afar. */
export const ordinaryTexts: readonly string[] = [
  'the quick brown fox_jumps-over the lazy dog, twice',
  'sk-1234, sk-proj-…, sk-ant-YOUR_KEY, ghp_xxxx, AKIA…, xoxb-token',
  `export OPENAI_API_KEY="$(pass show openai)"; export GITHUB_TOKEN=\${{ secrets.GITHUB_TOKEN }}`,
  `const authorization = \`Bearer \${token}\`; headers.set("authorization", authorization);`,
  'Authorization: Bearer <token>',
  'git commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  'sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==',
  '01ARZ3NDEKTSV4RRFFQ69G5FAV 01JD6ZQ0X4K3M9V1T7W2Y8B5NC',
  'f47ac10b-58cc-4372-a567-0e02b2c3d479 urn:uuid:6ba7b810-9dad-11d1-80b4-00c04fd430c8',
  'call_5f2d9c1ab34e47cfa0c2f16e8bd1f0aa toolu_01A09q90qw90lq917835lq9 msg_bdrk_01X7gJH2',
  'https://example.com/a/b?c=d#e mailto:someone@example.com git@github.com:owner/repo.git',
  'https://user:password@example.com/ https://$USER:$PASSWORD@host.io postgres://postgres:postgres@localhost/db',
  'http://localhost:3000/@vite/client https://example.com:8443/@a.io http://host:80/a@b.io git+ssh://git@x.io/a',
  'https://a.io/b:c/d@e.io npm://scope:name/x@1.2.3 http://[::1]:3000/@x.io https://medium.com/@user.name:x/y@z.io',
  `postgres://app:\${DB_PASSWORD}@db/main mongodb://localhost:27017/test`,
  '-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAlm0t\n-----END PUBLIC KEY-----',
  '-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ\n-----END CERTIFICATE-----',
  'The header is -----BEGIN PRIVATE KEY----- and then comes the key.',
  'if (line.startsWith("-----BEGIN RSA PRIVATE KEY-----")) throw new Error("a private key");',
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGkYb0gWcU9Cj8s2m8fZyq0QmXJgk6y8n5QX0aE1cV3x me@host',
  'eyJ is the beginning of {" in base64; eyJhbGciOiJIUzI1NiJ9 alone is a header',
  'some_very_long_identifier_in_snake_case_that_goes_on AnotherVeryLongIdentifierInPascalCase',
  'node_modules/.pnpm/@secretlint+secretlint-rule-preset-recommend@13.1.0/node_modules/x',
  'npm_config_registry=https://registry.npmjs.org/ npm_lifecycle_event=test npm_package_version=1.0.0',
  'ACCESS_KEY is missing; set secret_access_key in ~/.aws/credentials',
  'aws_account_id = 123456789012',
  '     1\t-----BEGIN PRIVATE KEY-----\n     2\tis the first line of a key\n     3\t-----END PRIVATE KEY-----',
  '> -----BEGIN PRIVATE KEY-----\n> …\n> -----END PRIVATE KEY-----\n> 9f86d081884c7d659a2feaa0c55ad015',
  'my_token_ghp_short, api_key_sk-ant-YOUR_KEY, secret_key_base, key_AKIA',
  `//registry.npmjs.org/:_authToken=\${NPM_TOKEN}`,
  'class Hash { static readonly SG_LENGTH = 64; } // SG.length, hf_model, gsk_count, lin_api_version',
  '{"id":"prod_Nq1aB2c3D4","price":"price_1NqXYZ","customer":"cus_9s6XKzkNRiz8i3","mode":"sk_test"}',
];
