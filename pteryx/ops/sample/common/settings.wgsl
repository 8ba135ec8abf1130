// Settings as the host packs them (SampleSettings::words), and an order of numbers as integers.
struct Settings {
  temperature: f32, top_p: f32, min_p: f32, repetition: f32, presence: f32, frequency: f32, top_k: u32, window: u32,
  seed_low: u32, seed_high: u32, vocabulary: u32
}
#if feeds
fn settings_of(w: array<u32, 12>) -> Settings {
  return Settings(bitcast<f32>(w[0]), bitcast<f32>(w[1]), bitcast<f32>(w[2]), bitcast<f32>(w[3]), bitcast<f32>(w[4]),
                  bitcast<f32>(w[5]), w[6], w[7], w[8], w[9], w[10]);
}
#else
fn setting(i: u32) -> u32 { return bitcast<u32>(load_settings(i)); }
fn read_settings() -> Settings {
  return Settings(bitcast<f32>(setting(0u)), bitcast<f32>(setting(1u)), bitcast<f32>(setting(2u)),
                  bitcast<f32>(setting(3u)), bitcast<f32>(setting(4u)), bitcast<f32>(setting(5u)), setting(6u),
                  setting(7u), setting(8u), setting(9u), setting(10u));
}
#end
const lowest: f32 = -3.4028234e38;
