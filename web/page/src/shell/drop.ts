// Files dropped anywhere on the page, or pasted. SPDX-License-Identifier: BSD-3-Clause

import { byId } from "../dom.ts";

export interface FileEvents {
  /** What dropping does now. */
  describe(): string;
  /** Whether a file is taken that is only pasted: other things are pasted for other reasons. */
  takesPasted(file: File): boolean;
  accept(files: File[]): void;
}

export function listenForFiles({ describe, takesPasted, accept }: FileEvents): void {
  const target = byId("drop-target");
  const text = target.querySelector("p")!;
  const hasFiles = (event: DragEvent): boolean => event.dataTransfer?.types.includes("Files") ?? false;
  // Entering a child leaves its parent: the overlay goes when as many were left as entered.
  let depth = 0;
  const hide = (): void => {
    depth = 0;
    target.hidden = true;
  };
  window.addEventListener("dragenter", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    depth++;
    text.textContent = describe();
    target.hidden = false;
  });
  window.addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    event.dataTransfer!.dropEffect = "copy";
  });
  window.addEventListener("dragleave", () => {
    if (--depth <= 0) hide();
  });
  window.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    hide();
    const files = [...event.dataTransfer!.files];
    if (files.length > 0) accept(files);
  });
  window.addEventListener("paste", (event) => {
    // Spreadsheets put a picture beside the text that is pasted into a field.
    const isText = isField(event.target) && event.clipboardData?.getData("text/plain") !== "";
    const files = [...(event.clipboardData?.files ?? [])].filter((file) => isModel(file) || (!isText && takesPasted(file)));
    if (files.length === 0) return;
    event.preventDefault();
    accept(files);
  });
}

function isField(target: EventTarget | null): boolean {
  return target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement;
}

function isModel(file: File): boolean {
  return /\.(pte|gguf)$/i.test(file.name);
}

/** Which of the files is the program, which are its external weights (.ptd), and which are inputs or labels. */
export function sortFiles(files: readonly File[]): { program: File | undefined; data: File[]; others: File[] } {
  const isData = (file: File): boolean => /\.ptd$/i.test(file.name);
  const isOther = (file: File): boolean => /\.(npy|txt|json|csv)$/i.test(file.name) || file.type.startsWith("image/");
  return { program: files.find((file) => !isData(file) && !isOther(file)), data: files.filter(isData), others: files.filter(isOther) };
}

/** A button that opens the file dialog. */
export function pickFiles(options: { accept?: string; multiple?: boolean }, chosen: (files: File[]) => void): void {
  const input = document.createElement("input");
  input.type = "file";
  if (options.accept) input.accept = options.accept;
  input.multiple = options.multiple ?? false;
  input.addEventListener("change", () => input.files && input.files.length > 0 && chosen([...input.files]));
  input.click();
}
