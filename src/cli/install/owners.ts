// Recognizes objects that another tool installs: it would revert what this command changes, or delete what it creates.
import type { KubernetesObject } from '../../resources/index.ts';
import { CliError } from '../errors.ts';

/** What a tool writes on the objects that it installs. */
interface Owner {
  readonly what: string;
  /** What to do instead. */
  readonly instead: string;
}

/** The tool that installs an object; undefined when none says so. */
function ownerOf({ metadata: { labels = {}, annotations = {} } }: KubernetesObject): Owner | undefined {
  const release = annotations['meta.helm.sh/release-name'];
  if (release !== undefined || labels['app.kubernetes.io/managed-by'] === 'Helm') {
    const [name, namespace] = [release ?? 'RELEASE', annotations['meta.helm.sh/release-namespace'] ?? 'NAMESPACE'];
    return {
      what: `the Helm release ${name} in namespace ${namespace}`,
      instead: `Change values there: helm upgrade ${name} CHART -n ${namespace} --reuse-values --set NAME=VALUE. Or remove the release first (helm uninstall ${name} -n ${namespace}); policies stay.`,
    };
  }
  const application = annotations['argocd.argoproj.io/tracking-id']?.split(':', 1)[0];
  if (application !== undefined) {
    return { what: `the Argo CD application ${application}`, instead: 'Change its source instead.' };
  }
  const kustomization = labels['kustomize.toolkit.fluxcd.io/name'] ?? labels['helm.toolkit.fluxcd.io/name'];
  return kustomization === undefined
    ? undefined
    : { what: `${kustomization} of Flux`, instead: 'Change its source instead.' };
}

/** @throws CliError when another tool installs one of the objects */
export function checkOwners(objects: readonly KubernetesObject[]): void {
  for (const object of objects) {
    const owner = ownerOf(object);
    if (owner !== undefined) {
      throw new CliError(`${object.kind.toLowerCase()} ${object.metadata.name} belongs to ${owner.what}`, {
        hint: `Nothing was changed. ${owner.instead}`,
      });
    }
  }
}
