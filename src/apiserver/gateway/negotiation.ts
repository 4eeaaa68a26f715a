// Content negotiation (RFC 9110 section 12.5.1;
// https://kubernetes.io/docs/reference/using-api/api-concepts/#alternate-representations-of-resources).
import { ApiError } from '../../cluster/index.ts';

/** The negotiated format of a response. */
export interface Representation {
  readonly format: 'json' | 'yaml';
  /** The requested transformation. Undefined: the object or list itself. */
  readonly as: 'Table' | 'PartialObjectMetadata' | 'PartialObjectMetadataList' | undefined;
  /** The version of `meta.k8s.io` for Tables and metadata. */
  readonly version: 'v1' | 'v1beta1';
  readonly isPretty: boolean;
}

/** The format of errors, and of responses without negotiation. */
export const PLAIN_JSON: Representation = { format: 'json', as: undefined, version: 'v1', isPretty: false };

/** Maximum number of clauses of an Accept header; more are ignored. No client sends as many. */
const MAX_ACCEPT_CLAUSES = 32;

/** One clause of an Accept header. */
export interface MediaRange {
  /** `application/json` */
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
}

/** The clauses of an Accept header, by preference. Empty for an absent header. */
export function mediaRanges(accept: string | undefined): readonly MediaRange[] {
  if (accept === undefined || accept.trim() === '') {
    return [];
  }
  const clauses = accept.split(',', MAX_ACCEPT_CLAUSES).map((clause) => {
    const [type = '', ...rest] = clause.split(';').map((part) => part.trim());
    const parameters = new Map(
      rest.map((parameter) => {
        const equals = parameter.indexOf('=');
        return equals === -1
          ? ([parameter.toLowerCase(), ''] as const)
          : ([parameter.slice(0, equals).trim().toLowerCase(), parameter.slice(equals + 1).trim()] as const);
      }),
    );
    const quality = Number(parameters.get('q') ?? '1');
    return { type: type.toLowerCase(), parameters, quality: Number.isFinite(quality) ? quality : 0 };
  });
  return clauses.filter(({ quality }) => quality > 0).toSorted((a, b) => b.quality - a.quality);
}

const FORMATS: ReadonlyMap<string, 'json' | 'yaml'> = new Map([
  ['*/*', 'json'],
  ['application/json', 'json'],
  ['application/yaml', 'yaml'],
]);

/**
 * Negotiates the format of a response that has objects.
 * @throws ApiError 406 when the client accepts no supported format.
 */
export function negotiate(
  headers: { readonly accept?: string | undefined; readonly 'user-agent'?: string | undefined },
  query: URLSearchParams,
  isWatch: boolean,
): Representation {
  const isPretty = isPrettyRequested(headers['user-agent'], query);
  const ranges = mediaRanges(headers.accept);
  if (ranges.length === 0) {
    return { ...PLAIN_JSON, isPretty };
  }
  for (const { type, parameters } of ranges) {
    const format = FORMATS.get(type);
    const as = transformationOf(parameters);
    if (format === undefined || as === 'unknown' || (isWatch && format === 'yaml')) {
      continue;
    }
    const version = parameters.get('v') === 'v1beta1' ? 'v1beta1' : 'v1';
    return { format, as, version, isPretty: (isPretty || parameters.get('pretty') === '1') && !isWatch };
  }
  const served = isWatch ? 'application/json;stream=watch' : 'application/json, application/yaml';
  throw new ApiError(406, 'NotAcceptable', `only the following media types are accepted: ${served}`);
}

function transformationOf(parameters: ReadonlyMap<string, string>): Representation['as'] | 'unknown' {
  const as = parameters.get('as');
  if (as === undefined) {
    return undefined;
  }
  const version = parameters.get('v');
  const isKnown =
    (as === 'Table' || as === 'PartialObjectMetadata' || as === 'PartialObjectMetadataList') &&
    parameters.get('g') === 'meta.k8s.io' &&
    (version === 'v1' || version === 'v1beta1');
  return isKnown ? as : 'unknown';
}

/** Whether to indent JSON: the parameter `pretty`; by default true for browsers, curl and wget. */
function isPrettyRequested(userAgent: string | undefined, query: URLSearchParams): boolean {
  const parameter = query.get('pretty');
  if (parameter !== null) {
    return parameter === '1' || parameter === 'true';
  }
  return ['curl', 'Wget', 'Mozilla/5.0'].some((start) => userAgent?.startsWith(start) === true);
}
