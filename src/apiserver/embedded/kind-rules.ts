import type { FieldError, KubernetesObject, MutableObject } from '../../resources/index.ts';
import { metadataErrors, ObjectSchema } from '../../resources/validation/index.ts';
import { decodeError } from '../builtin-kinds/decode-error.ts';
import { customResourceErrors } from '../custom-resources/custom-resource-validation.ts';
import type { ResourceDefinition } from '../resource-definition.ts';
import { metadataProblem } from './received-object.ts';

/** What objects of one kind get and must be, from its schema and its own functions. */
export class KindRules {
  readonly #definition: ResourceDefinition;
  #schema: ObjectSchema | undefined;

  constructor(definition: ResourceDefinition) {
    this.#definition = definition;
  }

  /** Fields of the object that the schema does not know: removed, and named. */
  prune(object: MutableObject): readonly string[] {
    return this.#objectSchema().prune(object);
  }

  /** Fields of the object that the schema does not know. */
  unknownFields(object: MutableObject): readonly string[] {
    return this.#objectSchema().unknownFields(object);
  }

  /** Why the object cannot be read: a value has another JSON type than its field. Of custom kinds, in the metadata. */
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
      // What the schemas of builtin kinds say is part of their own validation.
      ...(this.#definition.origin === 'custom' ? this.#objectSchema().validate(object, old, own) : own),
    ];
    const isCrd = this.#definition.kind === 'CustomResourceDefinition' && this.#definition.origin === 'builtin';
    return isCrd && errors.length === 0 ? customResourceErrors(object, old) : errors;
  }

  /** Made when it is first needed: most kinds of a cluster never are. */
  #objectSchema(): ObjectSchema {
    const { schema, origin } = this.#definition;
    this.#schema ??= new ObjectSchema(schema(), origin === 'builtin' ? { unknownFieldsIn: 'document' } : {});
    return this.#schema;
  }
}
