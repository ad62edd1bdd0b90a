/** SQL: whether what is stored of payload and meta is JSON, at most 1000 levels deep, and meta an object. */
export const isReadable =
  "((payload IS NULL OR json_valid(payload)) AND (meta IS NULL OR CASE WHEN json_valid(meta) THEN json_type(meta) = 'object' ELSE false END))";
