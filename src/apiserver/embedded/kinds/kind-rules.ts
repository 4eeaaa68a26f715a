import type { FieldError, KubernetesObject, MutableObject } from '../../../resources/index.ts';
import { metadataErrors, ObjectSchema } from '../../../resources/validation/index.ts';
import { decodeError } from '../../../resources/decoding/index.ts';
import { customResourceErrors } from '../../custom-resources/custom-resource-validation.ts';
import type { ResourceDefinition } from '../../resource-definition.ts';
import { metadataProblem } from './received-object.ts';

/** Defaults, pruning and validation of a kind. */
export class KindRules {
  readonly #definition: ResourceDefinition;
  #schema: ObjectSchema | undefined;

  constructor(definition: ResourceDefinition) {
    this.#definition = definition;
  }

  /** Removes unknown fields, and returns their paths. */
  prune(object: MutableObject): readonly string[] {
    return this.#objectSchema().prune(object);
  }

  /** The paths of unknown fields. */
  unknownFields(object: MutableObject): readonly string[] {
    return this.#objectSchema().unknownFields(object);
  }

  /** The error for a value of the wrong JSON type. For custom kinds only metadata is checked; validation checks the rest. */
  decodeError(object: MutableObject): string | undefined {
    const { origin, kind, version } = this.#definition;
    return origin === 'builtin' ? decodeError(this.#definition, object) : metadataProblem(object, kind, version);
  }

  applyDefaults(object: MutableObject): void {
    if (this.#definition.origin === 'custom') {
      this.#objectSchema().applyDefaults(object);
    }
    this.#definition.applyDefaults?.(object);
  }

  errors(object: KubernetesObject, old: KubernetesObject | undefined): readonly FieldError[] {
    const own = this.#definition.validate?.(object, old) ?? [];
    const errors = [
      ...metadataErrors(object, this.#definition, old),
      // The validation of builtin kinds covers their schemas.
      ...(this.#definition.origin === 'custom' ? this.#objectSchema().validate(object, old, own) : own),
    ];
    const isCrd = this.#definition.kind === 'CustomResourceDefinition' && this.#definition.origin === 'builtin';
    return isCrd && errors.length === 0 ? customResourceErrors(object, old) : errors;
  }

  /** Created on first use, because most kinds are never written. */
  #objectSchema(): ObjectSchema {
    const { schema, origin } = this.#definition;
    this.#schema ??= new ObjectSchema(schema(), origin === 'builtin' ? { unknownFieldsIn: 'document' } : {});
    return this.#schema;
  }
}
