/** Names of variables that hold a secret by convention. */
const secretName = /(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$/i;
/** A shorter value says little, and occurs in any text. */
const secretMin = 8;

/** Returns the secrets of an environment: the values of variables such as `OPENAI_API_KEY`. */
export function secretsIn(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  return Object.entries(env).flatMap(([name, value = '']) =>
    secretName.test(name) && value.length >= secretMin ? [value] : [],
  );
}

/** Returns whether a text contains one of these secrets. */
export function containsSecret(text: string, secrets: readonly string[]): boolean {
  return secrets.some((secret) => text.includes(secret));
}
