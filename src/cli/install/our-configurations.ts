// Which webhook configurations are ours.
import { isJsonObject, type JsonObject, type KubernetesObject, textOf } from '../../resources/index.ts';

/** What names of ours begin with. */
const PREFIX = 'portcullis-';

/**
 * Whether Portcullis made a configuration: by its label; or, where somebody took that away, by its name together with a webhook
 * that leads to the namespace of the product.
 */
export function isOurConfiguration(configuration: KubernetesObject, namespace: string): boolean {
  const { labels = {}, name = '' } = configuration.metadata;
  return (
    labels['app.kubernetes.io/managed-by'] === 'portcullis' ||
    (name.startsWith(PREFIX) && webhooksOf(configuration).some((webhook) => serviceNamespace(webhook) === namespace))
  );
}

export function webhooksOf({ webhooks }: KubernetesObject & { readonly webhooks?: unknown }): readonly JsonObject[] {
  return Array.isArray(webhooks) ? webhooks.filter(isJsonObject) : [];
}

/** As kubectl takes it. */
export function configurationName({ kind, metadata }: KubernetesObject): string {
  return `${kind.toLowerCase()}/${metadata.name}`;
}

function serviceNamespace({ clientConfig }: JsonObject): string {
  const service = isJsonObject(clientConfig) ? clientConfig['service'] : undefined;
  return isJsonObject(service) ? textOf(service['namespace']) : '';
}
