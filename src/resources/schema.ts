/** A validation rule in CEL (`x-kubernetes-validations`). */
export interface ValidationRule {
  readonly rule: string;
  readonly message?: string;
  readonly messageExpression?: string;
  readonly reason?: 'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired' | 'FieldValueDuplicate';
  readonly fieldPath?: string;
  readonly optionalOldSelf?: boolean;
}

/**
 * An OpenAPI v3 schema in Kubernetes: structural for CustomResourceDefinitions, with the extensions of Kubernetes' own
 * kinds. References (`$ref`) are resolved, so nodes may be shared and refer to themselves.
 */
export interface Schema {
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';
  readonly format?: string;
  readonly title?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly default?: unknown;
  readonly nullable?: boolean;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: boolean;
  readonly exclusiveMaximum?: boolean;
  readonly multipleOf?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly allOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly not?: Schema;
  readonly example?: unknown;
  readonly externalDocs?: { readonly url: string; readonly description?: string };
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
  readonly 'x-kubernetes-embedded-resource'?: boolean;
  readonly 'x-kubernetes-int-or-string'?: boolean;
  /** How server-side apply merges a list. Absent means atomic. */
  readonly 'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map';
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  /** How server-side apply merges an object. Absent means granular. */
  readonly 'x-kubernetes-map-type'?: 'granular' | 'atomic';
  readonly 'x-kubernetes-validations'?: readonly ValidationRule[];
  /** How a strategic merge patch treats the field: `merge`, `replace`, `retainKeys`, or `merge,retainKeys`. */
  readonly 'x-kubernetes-patch-strategy'?: string;
  readonly 'x-kubernetes-patch-merge-key'?: string;
  readonly 'x-kubernetes-group-version-kind'?: readonly {
    readonly group: string;
    readonly version: string;
    readonly kind: string;
  }[];
}
