// Recognizes webhook configurations of Portcullis.
import { isJsonObject, type JsonObject, type KubernetesObject, textOf } from '../resources/index.ts';

/** `portcullis-NAME`, or `namespaced-portcullis-NAME` for mutating policies of namespaces. */
const NAME = /^(?:namespaced-)?portcullis-/;

/**
 * Whether the configuration belongs to Portcullis, by its label. Without the label, by the prefix of its name and a webhook
 * whose Service is in the product's namespace.
 */
export function isOurConfiguration(configuration: KubernetesObject, namespace: string): boolean {
  const { labels = {}, name = '' } = configuration.metadata;
  return (
    labels['app.kubernetes.io/managed-by'] === 'portcullis' ||
    (NAME.test(name) && webhooksOf(configuration).some((webhook) => serviceNamespace(webhook) === namespace))
  );
}

export function webhooksOf({ webhooks }: KubernetesObject & { readonly webhooks?: unknown }): readonly JsonObject[] {
  return Array.isArray(webhooks) ? webhooks.filter(isJsonObject) : [];
}

/** In kubectl's notation. */
export function configurationName({ kind, metadata }: KubernetesObject): string {
  return `${kind.toLowerCase()}/${metadata.name}`;
}

function serviceNamespace({ clientConfig }: JsonObject): string {
  const service = isJsonObject(clientConfig) ? clientConfig['service'] : undefined;
  return isJsonObject(service) ? textOf(service['namespace']) : '';
}
