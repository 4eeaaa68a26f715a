import { readFileSync } from 'node:fs';
import { brotliDecompressSync } from 'node:zlib';
import type { JsonObject } from '../../values/index.ts';
import type { TableColumn } from '../table-column.ts';
import { parseJson } from '../../values/index.ts';

/** A schema as published by an API server, with references. */
export type OpenApiSchema = JsonObject;

/** Facts of Go types that OpenAPI lacks; see `tools/kubernetes-openapi.ts`. */
export interface GoFacts {
  /** Fields that are omitted when empty. */
  readonly drop: readonly string[];
  /** Lists, maps and times that are null when absent. */
  readonly null: readonly string[];
  /** Named types of scalars, lists and maps, by field: `v1.RestartPolicy`. */
  readonly types: Readonly<Record<string, string>>;
}

interface OpenApiData {
  /** `v1.34.4` */
  readonly version: string;
  readonly components: Readonly<Record<string, OpenApiSchema>>;
  /** By component name. */
  readonly goFacts: Readonly<Record<string, GoFacts>>;
  /** By group, version and kind: `apps/v1/Deployment`, `/v1/Pod`. */
  readonly tableColumns: Readonly<Record<string, readonly TableColumn[]>>;
}

/** Reads the file on first use, once per thread: 15 ms, 1.3 MiB of heap. */
class LazyOpenApiData {
  #data: OpenApiData | undefined;

  get(): OpenApiData {
    this.#data ??= parseJson(
      brotliDecompressSync(readFileSync(new URL('openapi.json.br', import.meta.url))).toString(),
    ) as OpenApiData;
    return this.#data;
  }
}

const DATA = new LazyOpenApiData();

/**
 * The published schemas (`components.schemas`) of the kinds in an embedded cluster, with all components that they refer
 * to: `io.k8s.api.core.v1.Pod`. Shared, and not to be changed.
 */
export function kubernetesOpenApi(): Readonly<Record<string, OpenApiSchema>> {
  return DATA.get().components;
}

/** The Kubernetes release of the schemas: `v1.34.4`. */
export function kubernetesVersion(): string {
  return DATA.get().version;
}

/** Facts about the Go type of a component, if any. */
export function goFactsOf(component: string): GoFacts | undefined {
  return DATA.get().goFacts[component];
}

/** The columns of `kubectl get` for a builtin kind. */
export function tableColumnsOf(group: string, version: string, kind: string): readonly TableColumn[] {
  return DATA.get().tableColumns[`${group}/${version}/${kind}`] ?? [];
}
