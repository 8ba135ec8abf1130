// In place of all node_*.ts in what browsers load, where nobody calls the functions. SPDX-License-Identifier: BSD-3-Clause
export const isNode = false;

function refuse(): never {
  throw new Error("this is not Node");
}
export { refuse as openPath, refuse as createNodeEntry, refuse as downloadToFile, refuse as nodeGpu, refuse as nodeProcessors, refuse as openNodeEntry, refuse as startNodeThread };
