import { SHOP } from '../walk-lab.ts';
import type { WalkChapter } from '../walk-step.ts';

export const INSTALLATION: WalkChapter = {
  title: 'a fresh installation',
  steps: [
    {
      by: 'admin',
      shows: 'installs, and doctor has no findings',
      sh: 'npx portcullis install && npx portcullis doctor --fail-on warning',
      prints: [/^deployment\.apps\/portcullis-controller ready$/m, /^No problems found\.$/m],
    },
    {
      by: 'admin',
      shows: 'lets people read policies by the role that was installed: one all of them, one those of a namespace',
      sh: `kubectl create namespace ${SHOP}
        kubectl create clusterrolebinding readers --clusterrole=portcullis-view --user=reader
        kubectl create rolebinding readers -n ${SHOP} --clusterrole=portcullis-view --user=tenant`,
      prints: [/^clusterrolebinding\S* created$/m, /^rolebinding\S* created$/m],
    },
    {
      by: 'reader',
      shows: 'may read policies, and nothing else',
      sh: `for what in 'get cap' 'list admissionpolicies -A' 'watch policies.policy.open-cluster-management.io' \
          'list pods' 'get secrets -n portcullis' 'list validatingwebhookconfigurations' 'get pods/log -n portcullis' \
          'list events' 'patch cap'; do
          echo "$what: $(kubectl auth can-i $what 2>/dev/null)"
        done`,
      prints: [
        /^get cap: yes\nlist admissionpolicies -A: yes\nwatch policies\S+: yes\nlist pods: no\nget secrets -n portcullis: no\n/,
        /^list validatingwebhookconfigurations: no\nget pods\/log -n portcullis: no\nlist events: no\npatch cap: no$/m,
      ],
    },
    {
      by: 'reader',
      shows: 'sees the PolicyServer, with the number of its pods that are ready',
      sh: 'kubectl get policyservers',
      prints: [/^default +2 +2 +portcullis:\S+ +AllReplicasConnected /m],
    },
  ],
};
