// What the page remembers: settings, the conversation, the last model. SPDX-License-Identifier: BSD-3-Clause

import type { GenerateOptions, Message } from "../../src/types.ts";

/** What is stored is read as if a stranger had written it: another version of the page, or a hand. */
type Read<T> = (value: unknown) => T;

/** `localStorage`, which a browser may forbid or fill up; the page then works without a memory. */
export class Store {
  constructor(private readonly storage: Pick<Storage, "getItem" | "setItem" | "removeItem"> | null) {}

  get<T>(key: string, read: Read<T>): T {
    try {
      return read(JSON.parse(this.storage?.getItem(`pteryx.${key}`) ?? "null"));
    } catch {
      return read(null);
    }
  }

  /** False where there was no room. */
  set(key: string, value: unknown): boolean {
    try {
      if (value === null) this.storage?.removeItem(`pteryx.${key}`);
      else this.storage?.setItem(`pteryx.${key}`, JSON.stringify(value));
      return this.storage !== null;
    } catch {
      return false;
    }
  }
}

export function openStore(kind: "local" | "session"): Store {
  try {
    return new Store(kind === "local" ? localStorage : sessionStorage);
  } catch {
    return new Store(null);
  }
}

/** One number of the sampling settings: its range, and what it is for. */
export interface NumberSetting {
  readonly label: string;
  readonly hint: string;
  readonly min: number;
  readonly max: number;
  readonly step: number;
  readonly initial: number;
}

export const kSampling = {
  temperature: { label: "Temperature", hint: "0 always picks the most likely token; higher is more varied.", min: 0, max: 2, step: 0.05, initial: 0.6 },
  topK: { label: "Top-k", hint: "Samples from the k most likely tokens; 0: all.", min: 0, max: 200, step: 1, initial: 40 },
  topP: { label: "Top-p", hint: "Samples from the smallest set of tokens with this total probability; 1: all.", min: 0.05, max: 1, step: 0.05, initial: 0.95 },
  minP: { label: "Min-p", hint: "Drops tokens less likely than this fraction of the most likely one; 0: none.", min: 0, max: 1, step: 0.01, initial: 0.05 },
  repetitionPenalty: { label: "Repetition penalty", hint: "Penalises tokens that already occurred; 1: off.", min: 1, max: 2, step: 0.05, initial: 1 },
  maxTokens: { label: "Maximum answer length", hint: "In tokens.", min: 1, max: 32_768, step: 1, initial: 512 },
} as const satisfies Record<string, NumberSetting>;
export type SamplingName = keyof typeof kSampling;

export interface Settings extends Readonly<Record<SamplingName, number>> {
  /** `null`: a new one for each answer. */
  readonly seed: number | null;
  readonly system: string;
}

export function readSettings(value: unknown): Settings {
  const found = isRecord(value) ? value : {};
  const numbers = Object.fromEntries(
    Object.entries(kSampling).map(([name, setting]) => [name, clampSetting(setting, found[name])]),
  ) as Record<SamplingName, number>;
  return { ...numbers, seed: readSeed(found["seed"]), system: typeof found["system"] === "string" ? found["system"] : "" };
}

export function clampSetting(setting: NumberSetting, value: unknown): number {
  if (typeof value !== "number" || !Number.isFinite(value)) return setting.initial;
  const inside = Math.min(setting.max, Math.max(setting.min, value));
  return Number.isInteger(setting.step) ? Math.round(inside) : inside;
}

export function readSeed(value: unknown): number | null {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 0xffffffff ? value : null;
}

/** Settings as the package takes them; what is off is left out. */
export function generateOptions(settings: Settings, seed: number): GenerateOptions {
  const { temperature, topK, topP, minP, repetitionPenalty, maxTokens } = settings;
  return {
    maxTokens,
    temperature,
    seed,
    ...(temperature > 0 && topK > 0 && { topK }),
    ...(temperature > 0 && topP < 1 && { topP }),
    ...(temperature > 0 && minP > 0 && { minP }),
    ...(repetitionPenalty > 1 && { repetitionPenalty }),
  };
}

/** How an answer went; kept with it. */
export interface AnswerFacts {
  readonly tokens: number;
  readonly promptTokens: number;
  readonly firstTokenMs: number;
  readonly tokensPerSecond: number;
  readonly reason: string;
  readonly seed: number;
}
export interface Turn {
  readonly role: "user" | "assistant";
  readonly content: string;
  readonly facts?: AnswerFacts;
}

export function readTurns(value: unknown): Turn[] {
  if (!Array.isArray(value)) return [];
  const turns: Turn[] = [];
  for (const entry of value as unknown[]) {
    if (!isRecord(entry)) continue;
    const { role, content, facts } = entry;
    if ((role !== "user" && role !== "assistant") || typeof content !== "string") continue;
    const known = readFacts(facts);
    turns.push(known ? { role, content, facts: known } : { role, content });
  }
  return turns;
}

function readFacts(value: unknown): AnswerFacts | null {
  if (!isRecord(value)) return null;
  const { tokens, promptTokens, firstTokenMs, tokensPerSecond, reason, seed } = value;
  const numbers = [tokens, promptTokens, firstTokenMs, tokensPerSecond, seed];
  if (!numbers.every((n) => typeof n === "number") || typeof reason !== "string") return null;
  return value as unknown as AnswerFacts;
}

/** The conversation as the model is given it. */
export function messagesOf(turns: readonly Turn[], system: string): Message[] {
  const said = turns.map(({ role, content }): Message => ({ role, content }));
  return system.trim() === "" ? said : [{ role: "system", content: system.trim() }, ...said];
}

/** How the model of the last visit is loaded again: only addresses can be. */
export interface LastModel {
  readonly url: string;
}
export function readLastModel(value: unknown): LastModel | null {
  return isRecord(value) && typeof value["url"] === "string" ? { url: value["url"] } : null;
}

export function readString(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
