// The fields that an API server names when it refuses a manifest.
import type { ApiError } from '../../cluster/index.ts';

/** How API servers name unknown fields: in strict validation, and in server-side apply. */
const UNKNOWN_FIELDS = [/unknown field "([^"]+)"/g, /(?<=[ ,:[])\.([^\s:]+): field not declared in schema/g];

/** A field that an API server refuses. */
export interface RefusedField {
  /** In the notation of API servers, `spec.rules[0].operations`. */
  readonly field: string;
  readonly isUnknown: boolean;
}

/** The fields that an error names, in its order. */
export function refusedFields({ details, message }: Pick<ApiError, 'details' | 'message'>): readonly RefusedField[] {
  const unknown = UNKNOWN_FIELDS.flatMap((pattern) => [...message.matchAll(pattern)]);
  return [
    ...unknown.map(([, field = '']) => ({ field, isUnknown: true })),
    ...(details?.causes ?? []).flatMap(({ field = '' }) =>
      field === '' || field.startsWith('<') ? [] : [{ field, isUnknown: false }],
    ),
  ];
}
