import type { Part } from '@tapedeck/tape';
import { isObject } from '@tapedeck/tape/internal';

/** A file as a chat has it: `url` is an address, or a `data:` URL with the bytes. */
export interface ChatFile {
  readonly type: 'file';
  readonly mediaType: string;
  readonly url: string;
  readonly filename?: string;
}

/** The part of a message for a file of a chat. Its bytes become a blob of the store. */
export function filePart({ mediaType, url, filename }: ChatFile): Part {
  const named = filename === undefined ? {} : { filename };
  const data = dataUrl.exec(url);
  if (data === null) return { type: 'file', mediaType, data: { type: 'url', url }, ...named };
  const [, isBase64, body = ''] = data;
  const bytes = isBase64 === undefined ? Buffer.from(decodeURIComponent(body)) : Buffer.from(body, 'base64');
  return { type: 'file', mediaType, data: new Uint8Array(bytes), ...named };
}

/** A `data:` URL: whether it is base64, and its body. Parameters of the media type are left out. */
const dataUrl = /^data:[^,]*?(;base64)?,([\s\S]*)$/i;

/** The file of a part whose blobs are restored, as a chat shows it; undefined for one without content or address. */
export function chatFile({ type, mediaType, filename, data, image }: Part): ChatFile | undefined {
  const content = data ?? image;
  const media =
    typeof mediaType === 'string' ? mediaType : type === 'image' ? 'image/*' : 'application/octet-stream';
  const url = urlOf(content, media);
  if (url === undefined) return undefined;
  return { type: 'file', mediaType: media, url, ...(typeof filename === 'string' && { filename }) };
}

function urlOf(content: unknown, mediaType: string): string | undefined {
  if (content instanceof Uint8Array)
    return `data:${mediaType};base64,${Buffer.from(content).toString('base64')}`;
  if (typeof content === 'string')
    return /^(?:data|https?):/i.test(content) ? content : `data:${mediaType};base64,${content}`;
  if (!isObject(content)) return undefined;
  const { type, url, data } = content as { type?: unknown; url?: unknown; data?: unknown };
  if (type === 'url' && typeof url === 'string') return url;
  return type === 'data' ? urlOf(data, mediaType) : undefined;
}
