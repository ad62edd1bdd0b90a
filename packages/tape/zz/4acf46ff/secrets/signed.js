const signature = /signature|encrypted|redactedData/i;

/** Whether a part of a message has the signature of its provider, or what only the provider can read. */
function isSigned(part         )                                            {
  if (typeof part !== 'object' || part === null || !('type' in part)) return false;
  const { providerOptions, providerMetadata } = part                                     ;
  return [providerOptions, providerMetadata].some(
    (options) =>
      typeof options === 'object' &&
      options !== null &&
      Object.values(options).some(
        (own) =>
          typeof own === 'object' && own !== null && Object.keys(own).some((key) => signature.test(key)),
      ),
  );
}

/**
 * What is left of a signed part, if it has a secret: its provider refuses one that was changed. It is dropped as a whole,
 * which is undefined; but a call, which has a result, loses the signature. Anything else is returned as it is.
 */
export function unsigned(part         , hasSecret                              )          {
  if (!isSigned(part)) return part;
  const { providerOptions, providerMetadata, ...content } = part;
  if (!hasSecret(content)) return part;
  return content.type === 'tool-call' ? content : undefined;
}
