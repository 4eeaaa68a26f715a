import type { OpenApiSource, OpenApiText } from '../../cluster/index.ts';
import { groupVersionOf } from '../../resources/index.ts';
import { OpenApiDocuments } from '../openapi/openapi.ts';
import type { ResourceRegistry, RegisteredResource } from './kinds/resource-registry.ts';

/** OpenAPI documents of an embedded cluster. */
export class EmbeddedOpenApi implements OpenApiSource {
  readonly #registry: ResourceRegistry;
  readonly #documents = new OpenApiDocuments();
  #served: readonly RegisteredResource[] | undefined;
  #revision = 0;

  constructor(registry: ResourceRegistry) {
    this.#registry = registry;
  }

  async revision(): Promise<string> {
    const served = this.#registry.all();
    if (served !== this.#served) {
      this.#served = served;
      this.#revision += 1;
    }
    return String(this.#revision);
  }

  async document(apiVersion: string): Promise<OpenApiText | undefined> {
    const { group, version } = groupVersionOf(apiVersion);
    const definitions = this.#registry.all().map(({ definition }) => definition);
    return this.#documents.groupVersion(definitions, group === '' ? `api/${version}` : `apis/${group}/${version}`);
  }
}
