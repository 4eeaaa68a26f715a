import type { AuditedInstallation } from '../../../audit/index.ts';
import { isForbidden, isNotFound } from '../../../cluster/index.ts';
import { argumentOf, CONTROLLER, DEPLOYMENTS } from '../../../installation/index.ts';
import { INSTALLATION } from '../../audit/audit-policies.ts';
import type { Connected } from '../../cluster/cluster-flags.ts';

/**
 * The installation of a cluster, with the namespaces that its controller exempts; the default ones where that is not known.
 * @param onUnknown told why it is not
 */
export async function installationOfCluster(
  { cluster }: Pick<Connected, 'cluster'>,
  productNamespace: string,
  onUnknown: (text: string) => void,
): Promise<AuditedInstallation> {
  const defaults = { ...INSTALLATION, productNamespace };
  try {
    const controller = await cluster.get(DEPLOYMENTS, { namespace: productNamespace, name: CONTROLLER });
    const exempt = argumentOf(controller, '--exempt-namespaces')?.split(',');
    const exemptNamespaces = exempt?.map((name) => name.trim()).filter((name) => name !== '');
    return exemptNamespaces === undefined ? defaults : { ...defaults, exemptNamespaces };
  } catch (error) {
    if (!isForbidden(error) && !isNotFound(error)) {
      throw error;
    }
    const why = isForbidden(error) ? 'may not be read' : 'does not exist';
    const names = defaults.exemptNamespaces.join(', ');
    onUnknown(
      `deployment/${CONTROLLER} in namespace ${productNamespace} ${why}: the exempt namespaces are taken to be ${names}`,
    );
    return defaults;
  }
}
